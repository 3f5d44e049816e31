"""The demonstration: what it does, what it shows of each step, and what it checks on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agent_chatroom_ledger.cli.terminal import Paint, plain
from agent_chatroom_ledger.cli.transcript import transcript
from agent_chatroom_ledger.cli.verdict import verdict
from agent_chatroom_ledger.errors import LedgerError
from agent_chatroom_ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


ROOM = "design-review"
TITLE = "Design review"
READERS = ("Analyst", "Reviewer")
TALK = (
    ("Analyst", "proposal", "18 of 20 checks pass. Parsing and the cold start are too slow."),
    ("Reviewer", "message", "What is the target for the cold start?"),
    ("Analyst", "message", "ls -la /tmp/scratch"),
    ("Analyst", "message", "Sorry, pasted by mistake. Below 100 ms; it takes 130 today."),
    ("Reviewer", "decision", "We ship when the cold start is below 100 ms."),
)
MISTAKE = 3
BROKEN = b"# Overwritten by an editor\n"
_PLAIN = Paint(enabled=False)


class Step(NamedTuple):
    """One thing that the demonstration shows: a sentence, and lines that bear it out."""

    title: str
    lines: tuple[str, ...]


def tell(root: Path) -> list[Step]:
    """Act the main job out in a new ledger at `root`, and return what was shown.

    Every claim is checked against what the ledger answers; LedgerError (code `demo_failed`) when
    one does not hold.
    """
    return [
        *_with(root, _talk, _diverge, create=True),
        # Opening it again is a restart: nothing is carried over but what is on disk.
        *_with(root, _restart, _exclude, _break_and_rebuild, _verify, _history),
    ]


def _with(root: Path, *acts: Callable[[Ledger], Step], create: bool = False) -> list[Step]:
    with Ledger.open(root, create=create) as ledger:
        return [act(ledger) for act in acts]


def _expect(claim: str, *, holds: bool) -> None:
    if not holds:
        raise LedgerError(f"The demonstration failed: {claim} does not hold.", code="demo_failed")


def _unread(ledger: Ledger) -> dict[str, int]:
    return {name: sum(item.count for item in ledger.consumer(name).unread()) for name in READERS}


def _counts(counts: dict[str, int]) -> str:
    return "unread: " + ", ".join(f"{name} {count}" for name, count in counts.items())


def _talk(ledger: Ledger) -> Step:
    room = ledger.create_room(TITLE, members=READERS, by="Analyst")
    for author, kind, body in TALK:
        room.post(author, body, kind=kind)
    _expect("5 messages", holds=len(room.messages()) == len(TALK))
    return Step(
        "Two agents talk in a room; every message is a commit.",
        tuple(transcript(room.messages(), _PLAIN)),
    )


def _diverge(ledger: Ledger) -> Step:
    before = _unread(ledger)
    ledger.consumer("Analyst").acknowledge(ROOM)
    after = _unread(ledger)
    _expect("each reader has a cursor of its own", holds=after == {"Analyst": 0, "Reviewer": 5})
    return Step(
        "Two readers diverge: Analyst has seen everything, Reviewer nothing.",
        (f"before  {_counts(before)}", f"after   {_counts(after)}"),
    )


def _restart(ledger: Ledger) -> Step:
    counts = _unread(ledger)
    _expect("cursors survive", holds=counts == {"Analyst": 0, "Reviewer": 5})
    return Step("One restarts: opened anew, the ledger knows both positions.", (_counts(counts),))


def _exclude(ledger: Ledger) -> Step:
    room = ledger.room(ROOM)
    room.exclude(MISTAKE, by="Reviewer", reason="pasted by mistake")
    stored = [message.n for message in room.messages()]
    seen = [item.n for item in room.lens().items if hasattr(item, "n")]
    _expect("excluding never erases", holds=stored == [1, 2, 3, 4, 5] and seen == [1, 2, 4, 5])
    return Step(
        f"Message {MISTAKE} is left out of the view; it is not erased.",
        (f"the log holds  {stored}", f"the lens shows {seen}"),
    )


def _break_and_rebuild(ledger: Ledger) -> Step:
    room = ledger.room(ROOM)
    room.compile()
    page = room.visible_path
    _expect("a view", holds=page is not None)
    assert page is not None
    good = page.read_bytes()
    page.write_bytes(BROKEN)
    found = sorted({issue.code for issue in ledger.verify().issues})
    still = [item.n for item in room.lens().items if hasattr(item, "n")]
    _expect("verify notices a broken view", holds=bool(found))
    _expect("a lens needs no view", holds=still == [1, 2, 4, 5])
    room.compile()
    _expect("the view is rebuilt bit for bit", holds=page.read_bytes() == good)
    return Step(
        "The compiled view is broken on purpose and rebuilt.",
        (
            f"overwritten    {page.relative_to(ledger.root)}",
            f"verify says    {', '.join(found)}",
            f"the lens shows {still}",
            "rebuilt        bit for bit as before",
        ),
    )


def _verify(ledger: Ledger) -> Step:
    report = ledger.verify(full=True)
    _expect("a sound ledger", holds=report.ok and not report.issues)
    return Step("Verification is clean.", (verdict(report, _PLAIN),))


def _history(ledger: Ledger) -> Step:
    entries = ledger.log(ROOM)
    lines = tuple(f"{entry.commit[:10]} {plain(entry.subject)}" for entry in entries)
    _expect("a commit for every message", holds=len(lines) > len(TALK))
    return Step("The room's history, newest first; `git log` shows the same.", lines)
