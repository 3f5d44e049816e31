"""Consumer lenses: the search for a fit beside rendering the room once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.consumerlens import lens_for
from agent_chatroom_ledger.domain.records import record_of
from agent_chatroom_ledger.domain.renderings import JSON, Shown
from agent_chatroom_ledger.domain.versions import Bundle, set_draft
from agent_chatroom_ledger.storage.writer import Entry, Transaction
from tests.benchmarks import ledgers
from tests.benchmarks.measure import Row, Scale, each, interleaved, row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_chatroom_ledger import Draft, Message, Room
    from agent_chatroom_ledger.storage.present import Present

ROUNDS = 7
_BATCH = 500


def consumer_lens(scale: Scale) -> list[Row]:
    """Fit 10,000 messages into two budgets, every message with versions of its own.

    Half of the room's size steps about half of the messages; a budget of nothing steps every one
    through all its levels, which is the most that a search can have to do.
    """
    count = scale.size(10_000, 1_000)
    root = scale.folder / f"lens-{count}"
    with ledgers.opened(root, "group") as ledger:
        room = ledger.create_room(ledgers.ROOM, members=ledgers.PEOPLE)
        ledgers.fill(room, count)
        _prepare(room)
        ledger.flush()
        whole = len(_rendered(room))
        if lens_for(room, "Reviewer", budget=whole, at="main").used != whole:
            raise RuntimeError("a lens that fits is not the rendering of its room")
        budgets = {"half": whole // 2, "nothing": 0}
        figures = interleaved(
            ROUNDS,
            {
                **{
                    name: lambda budget=budget: each(1, lambda: _fitted(room, budget))
                    for name, budget in budgets.items()
                },
                "one rendering": lambda: each(1, lambda: _rendered(room)),
            },
        )
    return [
        row(
            "lens", f"consumer lens of {count:,} messages, a budget of {name}", figures,
            ours=name, peer="one rendering", better="less", must=must,
        )
        for name, must in (("half", 5), ("nothing", 50))
    ]  # fmt: skip


def _prepare(room: Room) -> None:
    """Give every message versions, many in one transaction, which is quicker than one by one."""
    messages = room.messages()
    for start in range(0, len(messages), _BATCH):
        some = messages[start : start + _BATCH]

        def build(present: Present, some: Sequence[Message] = some) -> Sequence[Transaction]:
            log = f"{room.path}/operations/{present.origin}"
            entries = []
            for message in some:
                n, at = present.next_number(log), present.next_time()
                entries.append(Entry(log, record_of(_draft(message), n, at, present.new_id())))
            return (Transaction(tuple(entries)),)

        room.ledger.transact(build)


def _draft(message: Message) -> Draft:
    body = message.body
    texts = tuple(body[: len(body) * (9 - level) // 9] for level in range(10))
    bundle = Bundle(origin=message.origin, n=message.n, levels=texts, semantic=True)
    return set_draft(bundle, by="Editor")[0]


def _fitted(room: Room, budget: int) -> int:
    return lens_for(room, "Reviewer", budget=budget, reset=True).used


def _rendered(room: Room) -> str:
    """Render a room once, as its lens is without a budget."""
    return JSON.joined(JSON.item(Shown(item, 0, item.body)) for item in room.lens().items)


GROUPS = {"lens": consumer_lens}
