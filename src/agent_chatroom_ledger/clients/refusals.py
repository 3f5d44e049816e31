"""What is said of a client's file that is left alone: its name, the line, and the way out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Conflict, Forbidden, InvalidInput

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Place:
    """A client's file: the client's name as people know it, and where the file is."""

    client: str
    path: Path


def unreadable(place: Place, why: str, *, line: int | None = None) -> InvalidInput:
    """Describe a file that the client itself could not use."""
    where = f"{place.path}, line {line}" if line else str(place.path)
    return InvalidInput(
        f"{where}: {why}. {place.client} itself cannot use such a file, so it was left as it is. "
        "Mend that, or move the file away, and run the same command again.",
        code="client_file_unreadable",
        path=str(place.path),
        line=line,
    )


def uneditable(place: Place, what: str) -> Conflict:
    """Describe a file in which an edit would touch what is not ours."""
    return Conflict(
        f"{place.path}: {what} is written in a form that cannot be changed without touching the "
        "rest, so the file was left as it is. Change it by hand; docs/setup.md shows the entries.",
        code="client_file_uneditable",
        path=str(place.path),
    )


def taken(place: Place, what: str, *, line: int | None = None) -> Conflict:
    """Describe an entry under our name that is not ours."""
    where = f"{place.path}, line {line}" if line else str(place.path)
    return Conflict(
        f"{where}: {what} is there already and starts something else, so the file was left as it "
        "is. Give that one another name, or take it out, and run the same command again.",
        code="client_entry_taken",
        path=str(place.path),
        line=line,
    )


def not_writable(place: Place, why: str) -> Forbidden:
    """Describe a file that may not be written."""
    return Forbidden(
        f"{place.path} {why}, so it was left as it is. Allow writing it, or add what the plan "
        "shows where that file is made.",
        code="client_file_read_only",
        path=str(place.path),
    )


def changed_meanwhile(place: Place) -> Conflict:
    """Describe a file that somebody wrote between our reading and our writing."""
    return Conflict(
        f"{place.path} has changed since it was read (is {place.client} running?) and was left as "
        "it is. Run the same command again.",
        code="client_file_changed",
        path=str(place.path),
    )
