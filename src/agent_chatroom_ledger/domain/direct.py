"""Direct messages: the room that a set of names has to itself, and whom an answer to all goes to.

A direct room is keyed by its members: its id follows from their names alone, so that of several who
begin it at once, in whatever order they name each other, all mean the same one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from agent_chatroom_ledger.domain.names import BROADCAST, check_author
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import DIRECT_NAMES_MAX, TITLE_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agent_chatroom_ledger.domain.records import Message

DIRECT_FOLDER: Final = "direct"
_ID_PREFIX: Final = "direct-"
_ID_DIGITS: Final = 32


def check_addressees(names: Iterable[str], me: str) -> tuple[str, ...]:
    """Return the names that a direct message of mine goes to: each once, sorted, without me.

    Raises InvalidInput for one text instead of a list, for no name but one's own, for a name that
    nobody may have, and for more than 32.
    """
    if isinstance(names, str):
        raise InvalidInput("names is a list of names, not one text.", field="names")
    given = {check_author(name, "name") for name in names}
    others = tuple(sorted(given - {me}))
    if not others:
        raise InvalidInput(
            f"{me} is the only name; a direct message goes to somebody else."
            if given
            else "Name at least one receiver of the direct message.",
            field="names",
        )
    if len(others) > DIRECT_NAMES_MAX:
        raise InvalidInput(
            f"A direct message goes to at most {DIRECT_NAMES_MAX} names, not {len(others)}; make a "
            "room with them as its members.",
            field="names",
            limit=DIRECT_NAMES_MAX,
        )
    return others


def direct_id(names: Iterable[str]) -> str:
    """Return the id of the direct room of some names: a hash of the names, sorted."""
    # Imported here: it is heavy, and whoever only names this module needs it not.
    from hashlib import sha256

    key = msgspec.json.encode(sorted(set(names)))
    return f"{_ID_PREFIX}{sha256(key).hexdigest()[:_ID_DIGITS]}"


def is_direct(room_id: str) -> bool:
    """Tell whether a room's id is that of a direct room."""
    return room_id.startswith(_ID_PREFIX)


def direct_title(names: Sequence[str]) -> str:
    """Return the title of a direct room, ``A, B``; of many names the first, and how many more."""
    members = sorted(set(names))
    title = ", ".join(members)
    shown = len(members)
    while len(title) > TITLE_CHARS_MAX:
        shown -= 1
        title = f"{', '.join(members[:shown])} and {len(members) - shown} more"
    return title


def answered(message: Message, members: Iterable[str], me: str) -> tuple[str, ...]:
    """Return whom an answer to all of a direct message goes to: its sender and addressees but me.

    A message without addressees was said to the members of its room. Raises InvalidInput when
    nobody is left.
    """
    addressees = tuple(name for name in message.to if name != BROADCAST) or tuple(members)
    others = tuple(name for name in dict.fromkeys((message.author, *addressees)) if name != me)
    if not others:
        raise InvalidInput(
            f"The message {message.id} is {me}'s own and went to nobody else.", field="id"
        )
    return others
