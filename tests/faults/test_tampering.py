"""Somebody edits, amends, reverts or removes what is ours: told, and mended without a byte lost."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger, Room
from agent_chatroom_ledger.errors import Conflict, Corrupt, LedgerError
from tests.faults import workload
from tests.faults.soundness import Acknowledged, assert_sound, git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FOREIGN = '{"n":99,"id":"x","at":"2026-01-01T00:00:00.000000Z","author":"Boss","body":"forged"}'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with Ledger.open(tmp_path / "ledger", create=True) as ledger:
        room = ledger.create_room("Design review")
        for number in range(1, 7):
            room.post("Analyst", f"message {number}")
        room.exclude("2", by="Reviewer")
        room.compile()
        ledger.create_room("Other").post("Analyst", "elsewhere")
    return tmp_path / "ledger"


@pytest.fixture
def told(root: Path) -> list[Acknowledged]:
    with Ledger.open(root, read_only=True) as ledger:
        return [
            Acknowledged.of(summary.path, message)
            for summary in ledger.rooms()
            for message in ledger.room(summary.path).messages()
        ]


def segment(root: Path) -> Path:
    (path,) = (root / "rooms" / "design-review" / "messages").rglob("*.jsonl")
    return path


def append_line(root: Path) -> None:
    with segment(root).open("a", encoding="utf-8") as stream:
        stream.write(f"{FOREIGN}\n")


def change_bytes(root: Path) -> None:
    segment(root).write_bytes(segment(root).read_bytes().replace(b"message 3", b"forgery 3"))


def cut_short(root: Path) -> None:
    segment(root).write_bytes(segment(root).read_bytes()[:-40])


def change_projection(root: Path) -> None:
    (root / "rooms/design-review/policy.json").write_text('{"forged": true}\n', encoding="utf-8")


def change_view(root: Path) -> None:
    page = next((root / "rooms/design-review/view").rglob("*.md"))
    page.write_text("### #9 Boss · I agree\n", encoding="utf-8")


def add_room(root: Path) -> None:
    shutil.copytree(root / "rooms/design-review", root / "rooms/forged")


def replace_by_directory(root: Path) -> None:
    path = segment(root)
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("kept", encoding="utf-8")


EDITS: dict[str, Callable[[Path], None]] = {
    "a line too many": append_line,
    "other bytes": change_bytes,
    "cut short": cut_short,
    "projection": change_projection,
    "view": change_view,
    "a directory": replace_by_directory,
}


def quarantined(root: Path) -> bytes:
    place = root / ".git" / "ledger" / "quarantine"
    return b"".join(path.read_bytes() for path in place.rglob("*") if path.is_file())


def test_a_room_that_claims_the_place_of_another_changes_nothing_there(root: Path) -> None:
    """The path in room.json is what somebody wrote there; a room is archived from where it lies."""
    described = root / "rooms/design-review/room.json"
    text = described.read_text(encoding="utf-8")
    assert '"rooms/design-review"' in text
    described.write_text(text.replace('"rooms/design-review"', '"rooms/other"'), encoding="utf-8")
    git(root, "commit", "-qam", "edited")
    with Ledger.open(root) as ledger:
        room, other = ledger.room("rooms/design-review"), ledger.room("rooms/other")
        for change in (ledger.archive_room, Room.clear_policy, lambda r: r.add_member("Boss")):
            with pytest.raises(Corrupt, match="rooms verify") as caught:
                change(room)
            assert caught.value.code == "room_misplaced"
        assert [message.body for message in other.messages()] == ["elsewhere"]
        assert other.members == ()
        assert ledger.verify(repair=True).ok
        assert ledger.archive_room(room).path == "rooms/design-review"
        assert [found.path for found in ledger.rooms()] == ["rooms/other"]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("staged", [False, True], ids=["edited", "added to the index"])
def test_an_edited_work_tree_is_told_and_mended(
    root: Path, told: list[Acknowledged], edit: Callable[[Path], None], *, staged: bool
) -> None:
    """Verify names it; the repair puts ours back, and keeps the other bytes in quarantine."""
    edit(root)
    foreign = [p.read_bytes() for p in root.glob("rooms/design-review/**/*") if p.is_file()]
    if staged:
        git(root, "add", "--all")
    with Ledger.open(root) as ledger:
        assert not ledger.verify().ok
        assert ledger.verify(repair=True).ok
    ours = [p.read_bytes() for p in root.glob("rooms/design-review/**/*") if p.is_file()]
    kept = quarantined(root) + b"".join(ours)
    assert not [data for data in foreign if data not in kept], "foreign bytes are gone"
    assert_sound(root, told)


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_writing_beside_an_edited_work_tree_commits_no_forgery(
    root: Path, told: list[Acknowledged], edit: Callable[[Path], None]
) -> None:
    """A commit is made of the journal and of main, never of what lies in the work tree."""
    edit(root)
    with Ledger.open(root) as ledger:
        room = ledger.room("rooms/other")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "meanwhile")))
        ledger.flush()
        assert ledger.verify(repair=True).ok
    assert b"forg" not in git(root, "log", "-p", "main")
    assert_sound(root, told)


def commit_edit(root: Path) -> None:
    change_bytes(root)
    git(root, "commit", "-q", "-a", "-m", "forge")


def commit_projection(root: Path) -> None:
    change_projection(root)
    git(root, "commit", "-q", "-a", "-m", "forge")


def commit_line(root: Path) -> None:
    append_line(root)
    git(root, "commit", "-q", "-a", "-m", "forge")


def commit_less(root: Path) -> None:
    lines = segment(root).read_bytes().splitlines(keepends=True)
    segment(root).write_bytes(b"".join(lines[:-1]))
    git(root, "commit", "-q", "-a", "-m", "take back the last word")


def remove_room(root: Path) -> None:
    git(root, "rm", "-q", "-r", "rooms/design-review")
    git(root, "commit", "-q", "-m", "away with it")


def remove_log(root: Path) -> None:
    git(root, "rm", "-q", "-r", "rooms/design-review/messages")
    git(root, "commit", "-q", "-m", "away with it")


def amend(root: Path) -> None:
    git(root, "commit", "-q", "--amend", "-m", "another message")


def drop_a_commit(root: Path) -> None:
    git(root, "rebase", "-q", "-X", "ours", "--onto", "HEAD~4", "HEAD~3")


COMMITS: dict[str, Callable[[Path], None]] = {
    "other bytes": commit_edit,
    "projection": commit_projection,
    "a line too many": commit_line,
    "a line less": commit_less,
    "room removed": remove_room,
    "log removed": remove_log,
    "amend": amend,
    "rebase": drop_a_commit,
}


@pytest.mark.filterwarnings("ignore:The ledger in:UserWarning")
@pytest.mark.parametrize("change", COMMITS.values(), ids=COMMITS.keys())
@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_a_commit_that_changes_ours_is_mended_and_no_message_is_lost(
    root: Path, told: list[Acknowledged], change: Callable[[Path], None], *, is_open: bool
) -> None:
    """Writing goes on or is refused, but never gives a number twice; the repair reunites."""
    ledger = Ledger.open(root)
    if is_open:
        room = ledger.room("rooms/design-review")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "before it")))
        ledger.flush()
        change(root)
    else:
        ledger.close()
        change(root)
        ledger = Ledger.open(root)
    with ledger:
        for name in ("rooms/design-review", "rooms/other"):
            try:
                room = ledger.room(name)
                told.append(Acknowledged.of(room.path, room.post("Analyst", "after it")))
            except (Conflict, Corrupt, LedgerError):
                continue
        report = ledger.verify(repair=True)
        assert report.ok, [issue.message for issue in report.issues]
        room = ledger.room("rooms/design-review")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "after the repair")))
    assert_sound(root, told, rewritten=True)


def test_a_room_removed_while_it_has_frames_pending_is_taken_back(
    root: Path, told: list[Acknowledged], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was acknowledged after the removal stands in a whole room again."""
    from agent_chatroom_ledger.storage import background

    monkeypatch.setattr(background, "start", lambda _: workload.Silent())
    with Ledger.open(root, commit="group") as ledger:
        room = ledger.room("rooms/design-review")
        told.append(Acknowledged.of(room.path, room.post("Analyst", "pending")))
        remove_room(root)
        ledger.flush()
        assert len(room.messages()) == 7
    with Ledger.open(root) as ledger:
        assert ledger.verify(repair=True).ok
    assert_sound(root, told)
