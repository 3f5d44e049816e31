"""Where a room may lie: in no other room, and beside nothing that some file system takes for it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.names import (
    check_room_path,
    crowd_directory,
    fold_name,
    numbered_slug,
    room_directory,
)
from agent_chatroom_ledger.errors import Conflict
from agent_chatroom_ledger.limits import FOLDER_ROOMS_MAX
from agent_chatroom_ledger.storage import reading
from agent_chatroom_ledger.storage.reading import ROOMS

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_chatroom_ledger.ledger import Ledger
    from agent_chatroom_ledger.storage.present import Present


@dataclass(frozen=True)
class Places:
    """The places of a ledger, and which of them are taken.

    ``names`` lists a directory, each directory in it with a slash at its end; ``is_room`` tells
    whether a room lies at a path.
    """

    names: Callable[[str], list[str]]
    is_room: Callable[[str], bool]

    @classmethod
    def under_lock(cls, present: Present) -> Places:
        """Return the places as a writer sees them under the journal's lock."""
        return cls(present.names, lambda path: present.room(path) is not None)

    @classmethod
    def as_seen(cls, ledger: Ledger) -> Places:
        """Return the places as a reader sees them now."""
        source, overlay = ledger.look()

        def names(directory: str) -> list[str]:
            start = directory + "/"
            inside = {
                room[len(start) :].partition("/")[0] + "/"
                for room in overlay.rooms()
                if room.startswith(start)
            }
            return sorted({*source.names(directory), *inside})

        return cls(names, lambda path: reading.is_room(source, path, overlay))

    def for_new(self, folder: str, slug: str) -> str:
        """Return the path for a new room: free under case folding, ``~xx`` in a crowded folder.

        A slug that is taken gets a number. Raises Conflict for a folder that is a room or lies in
        one (code ``folder_is_room``), and for one that is spelled otherwise (``folder_spelling``).
        """
        place = ROOMS
        for part in _parts(folder):
            spelled = self._there(place).get(fold_name(part), part).rstrip("/")
            if spelled != part:
                raise Conflict(
                    f"{place} holds {spelled!r} already, which some file systems take for "
                    f"{part!r}; write it like that.",
                    code="folder_spelling",
                    folder=folder,
                )
            place = f"{place}/{part}"
            if self.is_room(place):
                raise Conflict(
                    f"{place} is a room, and a room holds no other rooms; choose another folder.",
                    code="folder_is_room",
                    folder=folder,
                )
        free, crowded = self._free(place, slug)
        return room_directory(folder, free, crowded=crowded)

    def for_old(self, path: str) -> str:
        """Return the path for a room that comes back: its own, or the nearest one that is free.

        What is taken meanwhile gets a number: the slug, or a folder that has become a room or is
        spelled otherwise now: whoever restores a room cannot choose another folder for it. Raises
        InvalidInput for what is no room's path.
        """
        folder, slug = check_room_path(path)
        place = ROOMS
        for part in _parts(folder):
            place = f"{place}/{self._open(place, part)}"
        here = place.removeprefix(ROOMS).removeprefix("/")
        free, crowded = self._free(place, slug)
        if (here, free) == (folder, slug):
            return path
        return room_directory(here, free, crowded=crowded)

    def _there(self, place: str) -> dict[str, str]:
        """Return the names in a directory, by what is the same to some file system."""
        return {fold_name(name.rstrip("/")): name for name in self.names(place)}

    def _open(self, place: str, part: str) -> str:
        """Return the name of a folder in which a room may lie, with a number where it must be."""
        there = self._there(place)
        for k in count(1):
            name = part if k == 1 else numbered_slug(part, k)
            directory = f"{name}/"
            if there.get(fold_name(name), directory) == directory and not self.is_room(
                f"{place}/{name}"
            ):
                return name
        raise AssertionError("count() ends")

    def _free(self, place: str, slug: str) -> tuple[str, bool]:
        """Return a slug that nothing in a folder bears, numbered if it must be; and if it is full.

        A full folder puts new rooms in directories of their own kind, ``~xx``.
        """
        names = self.names(place)
        there = {fold_name(name.rstrip("/")) for name in names}
        sharded = any(name.startswith("~") for name in names)
        rooms = sum(name.endswith("/") and not name.startswith("~") for name in names)
        for k in count(1):
            name = slug if k == 1 else numbered_slug(slug, k)
            if fold_name(name) in there:
                continue
            if sharded and fold_name(name) in self._there(f"{place}/{crowd_directory(name)}"):
                continue
            return name, rooms >= FOLDER_ROOMS_MAX
        raise AssertionError("count() ends")


def _parts(folder: str) -> list[str]:
    return folder.split("/") if folder else []
