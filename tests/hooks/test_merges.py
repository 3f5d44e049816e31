"""A merge holds what its parents hold, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger import Ledger
from tests.hooks.conftest import Pair, git, run
from tests.hooks.pushes import refused, taken

if TYPE_CHECKING:
    from pathlib import Path


def merged(pair: Pair, tmp_path: Path) -> Path:
    """Let two clones write to one room, and merge them by hand in the first; return the first."""
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(pair.bare), str(other))
    with Ledger.open(other) as ledger:
        ledger.room("Review").post("Reviewer", "from there")
    with Ledger.open(pair.ledger) as ledger:
        ledger.room("Review").post("Analyst", "from here")
    pair.refresh()
    git(pair.copy, "fetch", "-q", str(other), "main")
    run(pair.copy, "merge", "-q", "--no-commit", "FETCH_HEAD")
    git(pair.copy, "checkout", "-q", "HEAD", "--", "rooms/review/view")
    return other


def test_a_merge_is_taken(pair: Pair, tmp_path: Path) -> None:
    merged(pair, tmp_path)
    pair.commit("Merge")
    taken(pair)
    with Ledger.open(tmp_path / "other") as ledger:
        assert len(ledger.room("Review").messages()) == 4


def test_a_merge_that_loses_a_record_is_refused(pair: Pair, tmp_path: Path) -> None:
    merged(pair, tmp_path)
    newest = max(
        pair.copy.glob("rooms/review/messages/*/00/00/*.jsonl"), key=lambda p: -len(p.read_bytes())
    )
    git(pair.copy, "rm", "-qf", str(newest))
    pair.commit("Merge")
    refused(pair, "log_changed")


def test_a_merge_that_makes_a_record_up_is_refused(pair: Pair, tmp_path: Path) -> None:
    merged(pair, tmp_path)
    segment = pair.segment()
    segment.write_text(segment.read_text() + "{}\n")
    pair.commit("Merge")
    refused(pair, "foreign_records")


def test_a_merge_with_a_projection_of_its_own_is_refused(pair: Pair, tmp_path: Path) -> None:
    merged(pair, tmp_path)
    path = pair.copy / "rooms" / "review" / "room.json"
    path.write_text(path.read_text() + "\n")
    pair.commit("Merge")
    refused(pair, "state_message_mismatch")
