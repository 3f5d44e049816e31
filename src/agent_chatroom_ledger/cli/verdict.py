"""What a verification found, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_chatroom_ledger.cli.terminal import Paint
    from agent_chatroom_ledger.storage.verify import Report


def verdict(report: Report, paint: Paint) -> str:
    """Say whether the ledger is sound, and how much was looked at: `ok: 0 issues in 1 page`."""
    counts = ", ".join(counted(count, what) for what, count in report.counts.items())
    word = paint.good("ok") if report.ok else paint.bad("not ok")
    return f"{word}: {counted(len(report.issues), 'issues')} in {counts}"


def counted(count: int, what: str) -> str:
    """Say how many: `1 page`, `2 rooms folded`."""
    noun, _, rest = what.partition("_")
    one = noun.removesuffix("s") if count == 1 else noun
    return " ".join(filter(None, (str(count), one, rest.replace("_", " "))))
