"""The state of a room: what its operations have made of it so far."""

from __future__ import annotations

import msgspec

from agent_chatroom_ledger.domain.policy import Policy


class RoomState(msgspec.Struct, frozen=True, kw_only=True):
    """A room as its operations leave it.

    ``path`` is its directory in the ledger (``rooms/…``), ``origin`` the one that created it, whose
    numbers are written without their origin. It holds no last number and no time of change, so an
    append changes nothing here. ``created_at`` is in the stored form.
    """

    id: str
    title: str
    path: str
    folder: str
    slug: str
    members: tuple[str, ...]
    created_at: str
    created_by: str
    origin: str
    policy: Policy = Policy()
