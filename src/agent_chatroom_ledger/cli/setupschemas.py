"""The JSON documents of `rooms setup`."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from agent_chatroom_ledger.cli.schemabase import Shape

Part = Literal["absent", "current", "drifted"]


class ClientFileChange(Shape):
    """One file of a client and what is done to it."""

    path: str
    action: Literal["none", "create", "change", "remove"]
    diff: Annotated[str, msgspec.Meta(description="unified; very long lines are cut")]


class SetupDocument(Shape):
    """What setting a client up changes; `apply_with` is the command that writes it."""

    client: str
    applied: bool
    files: list[ClientFileChange]
    warnings: list[str]
    notes: list[str]
    apply_with: str | None = None


class ClientFileState(Shape):
    """What a file holds of ours, by part: server, hooks, permission."""

    path: str
    exists: bool
    parts: dict[str, Part]
    problem: str | None


class ClientStatus(Shape):
    """Whether a client is set up, and whether it runs what is set up."""

    client: str
    installed: Annotated[bool, msgspec.Meta(description="its command is on PATH")]
    state: Literal["absent", "current", "drifted", "unreadable"]
    trust: Literal["trusted", "untrusted", "modified", "unknown"]
    files: list[ClientFileState]
    notes: list[str]


class SetupStatusDocument(Shape):
    """Every client; `command` is how clients are told to start us."""

    command: list[str]
    clients: list[ClientStatus]
    warnings: list[str]
