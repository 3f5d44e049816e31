"""Consumer lenses: a room fitted into what one consumer can take, old messages made shorter.

While it does not fit, the oldest message that is not at its last level goes one level up. The
choice is sticky: the next lens of the same consumer begins with it, so that what a model was shown
does not change from turn to turn without need. It is kept in ``.git/ledger/consumers``; nothing of
the room is written, and a consumer for whom nothing fits is told so and stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.domain.budget import fit
from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.consumerstate import (
    Runs,
    level_of,
    levels_of,
    runs_of,
    runs_of_entry,
)
from agent_chatroom_ledger.domain.lenses import lens
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.policy import Policy, StandIn
from agent_chatroom_ledger.domain.records import Message
from agent_chatroom_ledger.domain.renderings import JSON, Form, Shown, form_of
from agent_chatroom_ledger.errors import Corrupt, Forbidden, InvalidInput
from agent_chatroom_ledger.limits import VERSION_LEVELS_MAX
from agent_chatroom_ledger.room import Room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_chatroom_ledger.domain.lenses import LensItem
    from agent_chatroom_ledger.domain.versions import Bundle
    from agent_chatroom_ledger.storage.ownedfiles import OwnedFile
    from agent_chatroom_ledger.storage.versionfold import VersionReader

BUDGET_CHARS = 180_000
VALID = "valid"
EXHAUSTED = "exhausted"
Measure = Callable[[str], int]


class ConsumerLens(msgspec.Struct, frozen=True, kw_only=True):
    """A room as one consumer is shown it, within a budget.

    ``items`` are what is shown, in order: each with the level that was chosen and its text.
    ``rendering`` is what was measured, in the form that was asked for, and ``used`` its size: in
    characters, or by the caller's own measure. ``status`` is ``valid``, or ``exhausted`` when
    everything is at its last level and still does not fit. ``position`` and ``message_count`` are
    those of the whole room.
    """

    room: Room
    consumer: str
    form: str
    status: str
    budget: int
    used: int
    highest_level: int
    items: tuple[Shown, ...]
    rendering: str
    policy: Policy
    position: Mapping[str, int]
    message_count: int
    last: Message | None
    warnings: tuple[str, ...] = ()

    @property
    def margin(self) -> int:
        """What is left of the budget; negative when it is exhausted."""
        return self.budget - self.used

    def compiled(self) -> dict[str, Any]:
        """Return how the fit came out, as JSON values."""
        return {
            "status": self.status,
            "threshold_chars": self.budget,
            "compiled_chars": self.used,
            "remaining_margin_chars": self.margin,
            "highest_version_used": self.highest_level,
        }


def lens_for(
    room: Room,
    consumer: str,
    *,
    budget: int = BUDGET_CHARS,
    form: str | Form = JSON,
    measure: Measure | None = None,
    reset: bool = False,
    at: str | datetime | None = None,
) -> ConsumerLens:
    """Return a room fitted into a consumer's budget.

    ``budget`` is in characters of the rendering, or in what ``measure`` counts: it is given each
    item of the rendering with what follows it (and once what stands around all of them), and the
    sum counts. ``reset`` forgets what was chosen before. ``at`` shows the room as it was at a
    commit or time; then nothing is remembered, and nothing kept.
    """
    check_author(consumer, "consumer")
    if budget < 0:
        raise InvalidInput("A budget must not be negative.", field="budget")
    written = form_of(form)
    reader = room.reader(at)
    messages, policy = reader.messages(), reader.state().policy
    file = None if at is not None else _file(room, consumer)
    kept = {} if file is None or reset else _kept(file, room)
    with reader.versions(room.ledger.layout) as versions:
        search = _Search(lens(messages, policy), versions, written, measure, kept)
        search.run(budget)
    position = reader.positions()
    compiled = ConsumerLens(
        room=room,
        consumer=consumer,
        form=written.name,
        status=EXHAUSTED if search.used > budget else VALID,
        budget=budget,
        used=search.used,
        highest_level=max(search.levels, default=0),
        items=tuple(search.shown),
        rendering=written.joined(search.parts),
        policy=policy,
        position=position,
        message_count=len(messages),
        last=messages[-1] if messages else None,
    )
    assert measure is not None or len(compiled.rendering) == compiled.used, "sizes are additive"
    if file is None or compiled.status == EXHAUSTED:
        return compiled
    return _keep(file, compiled, kept, reset=reset)


def consumer_state(room: Room, consumer: str) -> dict[str, Any]:
    """Return what is remembered of a consumer's lenses of a room, as JSON values.

    ``levels`` holds runs of numbers by origin, ``compiled`` how the fit came out that settled on
    them, both empty at first. Raises Corrupt (code ``consumer_state_invalid``) for a damaged file.
    """
    check_author(consumer, "consumer")
    file = _file(room, consumer)
    _kept(file, room)
    entry = file.load()["rooms"].get(room.id, {})
    return {
        "consumer": consumer,
        "room": room.id,
        "levels": entry.get("levels", {}),
        "compiled": entry.get("compiled"),
        "updated_at": entry.get("at"),
        "path": str(file.path),
    }


class _Search:
    """The items of a lens at their levels, with what each takes."""

    def __init__(
        self,
        items: Sequence[LensItem],
        versions: VersionReader,
        form: Form,
        measure: Measure | None,
        kept: Runs,
    ) -> None:
        self._form = form
        self._versions = versions
        self._measure = measure
        self._bundles: dict[int, Bundle | None] = {}
        self._items = items
        self.levels = [self._kept_level(item, kept) for item in items]
        self.shown = [self._show(index, level) for index, level in enumerate(self.levels)]
        self.parts = [form.item(shown) for shown in self.shown]
        self.used = 0

    def run(self, budget: int) -> None:
        """Find the levels, and write anew what has changed."""
        found = fit(self.levels, self._size_of_all(), budget, self._sizes)
        for index, level in enumerate(found.levels):
            if level != self.levels[index]:
                self.shown[index] = self._show(index, level)
                self.parts[index] = self._form.item(self.shown[index])
        self.levels = list(found.levels)
        self.used = found.used

    def _kept_level(self, item: LensItem, kept: Runs) -> int:
        if not kept or isinstance(item, StandIn):
            return 0
        return level_of(kept, item.origin, item.n)

    def _show(self, index: int, level: int) -> Shown:
        item = self._items[index]
        bundle = self._bundle(index) if level else None
        return Shown(item, level, item.body if bundle is None else bundle.levels[level])

    def _bundle(self, index: int) -> Bundle | None:
        """Return a message's bundle; None when there is none, or it was made from another text."""
        if index not in self._bundles:
            item = self._items[index]
            found = None
            if isinstance(item, Message):
                found = self._versions.find(item.origin, item.n)
            if found is not None and found.levels[0] != item.body:
                found = None
            self._bundles[index] = found
        return self._bundles[index]

    def _after(self, index: int) -> str:
        """Return what follows an item, which is measured with it."""
        return self._form.between if index < len(self._items) - 1 else ""

    def _size_of_all(self) -> int:
        form = self._form
        if self._measure is None:
            between = len(form.between) * max(len(self.parts) - 1, 0)
            return len(form.opening) + len(form.closing) + between + sum(map(len, self.parts))
        around = self._measure(form.opening + form.closing)
        return around + sum(
            self._measure(part + self._after(index)) for index, part in enumerate(self.parts)
        )

    def _sizes(self, index: int) -> Sequence[int] | None:
        if isinstance(self._items[index], StandIn):
            return None
        measure, level = self._measure, self.levels[index]
        if measure is not None:
            after = self._after(index)
            return [
                measure(self._form.item(self._show(index, other)) + after)
                for other in range(VERSION_LEVELS_MAX)
            ]
        size = len(self.parts[index])
        bundle = self._bundle(index)
        if bundle is None:
            return (size,) * VERSION_LEVELS_MAX
        chars = self._form.text_chars
        rest = size - chars(bundle.levels[level])
        return [rest + chars(text) for text in bundle.levels]


def _file(room: Room, consumer: str) -> OwnedFile:
    from agent_chatroom_ledger.storage.ownedfiles import LENSES, OwnedFile

    return OwnedFile(room.ledger.layout, consumer, schema=LENSES, section="rooms")


def _kept(file: OwnedFile, room: Room) -> Runs:
    entry = file.load()["rooms"].get(room.id, {})
    try:
        return runs_of_entry(entry)
    except InvalidInput as error:
        raise Corrupt(
            f"The consumer's state {file.path} is damaged: {error.message}. Put back a copy of it, "
            "or move it away to begin again.",
            code="consumer_state_invalid",
            path=str(file.path),
        ) from None


def _keep(file: OwnedFile, compiled: ConsumerLens, kept: Runs, *, reset: bool) -> ConsumerLens:
    """Remember the levels that were chosen, when they are others than before."""
    room = compiled.room
    chosen = {
        (shown.item.origin, shown.item.n): shown.level
        for shown in compiled.items
        if isinstance(shown.item, Message)
    }
    if not reset and all(level == level_of(kept, *key) for key, level in chosen.items()):
        return compiled
    now = from_datetime(datetime.now(UTC))

    def edit(document: dict[str, Any]) -> dict[str, Any]:
        rooms = document["rooms"]
        levels = dict(chosen)
        if not reset:
            # Another process of this consumer may have gone further meanwhile.
            before = runs_of_entry(rooms.get(room.id, {}))
            for key, level in levels_of(before, compiled.position):
                levels[key] = max(level, levels.get(key, 0))
        entry = {
            **rooms.get(room.id, {}),
            "title": room.title,
            "path": room.path,
            "levels": runs_of(levels.items()),
            "compiled": {**compiled.compiled(), "format": compiled.form},
            "at": now,
        }
        return {**document, "updated_at": now, "rooms": {**rooms, room.id: entry}}

    try:
        file.change(edit)
    except Forbidden as error:
        what = f"the chosen levels could not be kept: {error.message}"
        return msgspec.structs.replace(compiled, warnings=(*compiled.warnings, what))
    return compiled
