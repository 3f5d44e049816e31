"""The two files that are projected from a room's state: ``room.json`` and ``policy.json``.

Both are JSON, indented, keys sorted, with a line feed at the end, and the same state always gives
the same bytes (invariant 2). Their format is pinned by golden files (tests/domain/golden).
"""

from __future__ import annotations

from typing import Final

import msgspec

from agent_chatroom_ledger.domain.policy import Policy, Ranges, StandIn, ranges_of
from agent_chatroom_ledger.domain.references import (
    full_ref,
    parse_range,
    parse_ranges,
    parse_ref,
    range_ref,
)
from agent_chatroom_ledger.domain.roomstate import RoomState
from agent_chatroom_ledger.errors import Corrupt, InvalidInput

FORMAT: Final = 1


class _RoomFile(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    id: str
    title: str
    path: str
    folder: str
    slug: str
    members: tuple[str, ...]
    created_at: str
    created_by: str
    origin: str


class _StandInFile(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    replaces: tuple[str, ...]
    insert_after: str
    speaker: str
    kind: str
    body: str
    at: str


class _PolicyFile(msgspec.Struct, frozen=True, kw_only=True):
    format: int
    excluded: tuple[str, ...] = ()
    standins: tuple[_StandInFile, ...] = ()


class _FormatOnly(msgspec.Struct, frozen=True):
    format: int


_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_FORMAT_DECODER: Final = msgspec.json.Decoder(_FormatOnly)
_ROOM_DECODER: Final = msgspec.json.Decoder(_RoomFile)
_POLICY_DECODER: Final = msgspec.json.Decoder(_PolicyFile)


def _pretty(file: _RoomFile | _PolicyFile) -> bytes:
    return msgspec.json.format(_ENCODER.encode(file), indent=2) + b"\n"


def room_json(state: RoomState) -> bytes:
    """Return the bytes of a room's ``room.json``: everything but the policy."""
    return _pretty(
        _RoomFile(
            format=FORMAT,
            id=state.id,
            title=state.title,
            path=state.path,
            folder=state.folder,
            slug=state.slug,
            members=state.members,
            created_at=state.created_at,
            created_by=state.created_by,
            origin=state.origin,
        ),
    )


def policy_json(state: RoomState) -> bytes:
    """Return the bytes of a room's ``policy.json``; every reference in it has its origin."""
    return _pretty(
        _PolicyFile(
            format=FORMAT,
            excluded=tuple(
                range_ref(origin, first, last)
                for origin, ranges in sorted(state.policy.excluded.items())
                for first, last in ranges
            ),
            standins=tuple(
                _StandInFile(
                    id=standin.id,
                    replaces=tuple(refs_of(standin.replaces)),
                    insert_after=full_ref(*standin.insert_after),
                    speaker=standin.speaker,
                    kind=standin.kind,
                    body=standin.body,
                    at=standin.at,
                )
                for standin in state.policy.standins
            ),
        ),
    )


def refs_of(messages: tuple[tuple[str, int], ...]) -> list[str]:
    """Return references to messages as full ranges, origins and numbers in order."""
    origins = sorted({origin for origin, _ in messages})
    return [
        range_ref(origin, first, last)
        for origin in origins
        for first, last in ranges_of(n for o, n in messages if o == origin)
    ]


def state_from_projections(room_file: bytes, policy_file: bytes) -> RoomState:
    """Return the state that the bytes of ``room.json`` and ``policy.json`` describe.

    Raises Corrupt when one of them cannot be read or (code ``newer_format``) is of a newer version;
    the room's operations log has the truth then.
    """
    try:
        for name, data in (("room.json", room_file), ("policy.json", policy_file)):
            found = _FORMAT_DECODER.decode(data).format
            if found > FORMAT:
                raise Corrupt(
                    f"{name} has format {found}; this version reads up to {FORMAT}: update it",
                    code="newer_format",
                    format=found,
                )
        room = _ROOM_DECODER.decode(room_file)
        return RoomState(
            id=room.id,
            title=room.title,
            path=room.path,
            folder=room.folder,
            slug=room.slug,
            members=room.members,
            created_at=room.created_at,
            created_by=room.created_by,
            origin=room.origin,
            policy=_policy(_POLICY_DECODER.decode(policy_file)),
        )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, InvalidInput) as error:
        raise Corrupt(f"a room's projections cannot be read: {error}") from None


def _policy(file: _PolicyFile) -> Policy:
    excluded: dict[str, Ranges] = {}
    for text in file.excluded:
        origin, first, last = parse_range(text, "")
        excluded[origin] = (*excluded.get(origin, ()), (first, last))
    return Policy(excluded, tuple(_standin(standin) for standin in file.standins))


def _standin(file: _StandInFile) -> StandIn:
    ranges = parse_ranges(file.replaces, "")
    return StandIn(
        id=file.id,
        replaces=tuple((o, n) for o, first, last in ranges for n in range(first, last + 1)),
        insert_after=parse_ref(file.insert_after, ""),
        speaker=file.speaker,
        kind=file.kind,
        body=file.body,
        at=file.at,
    )
