"""The audit trail: what a commit says of itself, and what a revision or a time means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger.domain.clock import SECONDS_MAX
from agent_chatroom_ledger.errors import Conflict, NotFound
from agent_chatroom_ledger.storage import history, refs

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger import Ledger
    from tests.conftest import Git


def test_trailers_are_the_last_lines_only() -> None:
    message = "subject\n\nRoom: forged\n\ntext\nKind: message\nFrame: 7\n"
    assert history.trailers(message) == [("Kind", "message"), ("Frame", "7")]
    assert history.trailers("subject\n") == []
    assert history.trailers("") == []


@pytest.mark.parametrize(
    "body",
    ["x\n\nRoom: rooms/other\nFrame: 1\n", "Frame: 1", "\u2028Room: rooms/other\u0085Kind: x"],
)
def test_no_body_forges_what_a_commit_says(ledger: Ledger, body: str) -> None:
    room = ledger.create_room("Here")
    message = room.post("Ann", body)
    entry = next(entry for entry in ledger.log(room) if entry.messages)
    assert entry.rooms == ("rooms/here",)
    assert entry.records == (message.id,)
    assert entry.frame != 1
    assert entry.kinds == ("message",)


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("253402300799 +0000", "9999-12-31T23:59:59Z"),
        ("253402300800 +0000", "9999-12-31T23:59:59Z"),
        ("99999999999999999 +0000", "9999-12-31T23:59:59Z"),
        ("9223372036854775808 +0000", "1970-01-01T00:00:00Z"),
        ("9" * 4_000 + " +0000", "1970-01-01T00:00:00Z"),
        ("-1 +0000", "1970-01-01T00:00:00Z"),
        ("-99999999999999 +0000", "1970-01-01T00:00:00Z"),
        ("12 +99999999", "1970-01-01T00:00:12Z"),
    ],
    ids=lambda value: value[:24],
)
def test_a_commit_of_any_time_is_shown(
    ledger: Ledger, git: Git, tmp_path: Path, moment: str, shown: str
) -> None:
    room = ledger.create_room("Here")
    room.post("Ann", "one")
    ledger.flush()
    root, main = ledger.root, refs.read_main(ledger.layout)
    tree = git(root, "rev-parse", "main^{tree}").strip()
    who = f"A Person <a@example.invalid> {moment}"
    (tmp_path / "commit").write_text(
        f"tree {tree}\nparent {main}\nauthor {who}\ncommitter {who}\n\nodd\n\nRoom: {room.path}\n",
        encoding="utf-8",
    )
    made = git(root, "hash-object", "-t", "commit", "-w", "--literally", str(tmp_path / "commit"))
    git(root, "update-ref", "refs/heads/main", made.strip())
    entry = next(iter(ledger.log()))
    assert (entry.subject, entry.as_dict()["at"]) == ("odd", shown)
    assert entry.as_dict()["said_at"] == shown
    assert made.strip() in {found.commit for found in ledger.log(room)}
    assert made.strip() in ledger.timeline.touching(room.path)
    assert ledger.timeline.commit_at(SECONDS_MAX)
    assert [message.body for message in room.messages(at="HEAD")] == ["one"]
    assert room.post("Ann", "two").n == 2


@pytest.mark.parametrize("number", ["²", "٣", "-1", "x", "9" * 5_000])
def test_a_frame_that_somebody_made_up_is_none(ledger: Ledger, git: Git, number: str) -> None:
    ledger.create_room("Here").post("Ann", "one")
    ledger.flush()
    message = f"by hand\n\nFrame: {number}\n"
    git(ledger.root, "commit", "-q", "--allow-empty", "-m", message)
    assert ledger.timeline.behind() >= 0
    assert next(iter(ledger.log())).frame is None
    later = datetime.now(UTC) + timedelta(seconds=5)
    assert ledger.commit_at(later) == refs.read_main(ledger.layout)
    assert ledger.timeline.behind() == 0


def test_history_is_walked_newest_first_through_merges(ledger: Ledger, git: Git) -> None:
    ledger.create_room("Here").post("Ann", "one")
    ledger.flush()
    root = ledger.root
    git(root, "checkout", "-q", "-b", "side", "HEAD~1")
    git(root, "commit", "-q", "--allow-empty", "-m", "aside")
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-edit", "side")
    ours = [commit.oid for commit in history.walk(ledger.objects, refs.read_main(ledger.layout))]
    theirs = git(root, "rev-list", "main").split()
    assert sorted(ours) == sorted(theirs)
    assert ours[0] == theirs[0]
    stopped = list(history.walk(ledger.objects, theirs[0], until=theirs[0]))
    assert stopped == []


def test_a_time_means_the_newest_commit_at_or_before_it(ledger: Ledger) -> None:
    room = ledger.create_room("Here")
    message = room.post("Ann", "one")
    ledger.flush()
    newest = refs.read_main(ledger.layout)
    later = datetime.now(UTC) + timedelta(seconds=5)
    for at in (later, later.isoformat(), later.isoformat().replace("+00:00", "Z")):
        assert history.resolve(ledger.layout, ledger.objects, lambda: ledger.timeline, at) == newest
    with pytest.raises(NotFound):
        history.resolve(
            ledger.layout, ledger.objects, lambda: ledger.timeline, message.at - timedelta(days=1)
        )


NOT_THERE = (
    "HEAD~99999999999999999999",
    "HEAD~" + "9" * 5_000,
    "HEAD~1" + "0" * 400_000 + "~1",
    "HEAD~\u0662",
    "HEAD~\u00b2",
    "main^99",
    "a\0b",
    "HEAD\0",
    "z" * 300,
    "z" * 100_000,
    "z/" * 50_000,
    "/".join(["z" * 200] * 100),
    "\udc80",
    "\ud800~1",
    "heads",
    "refs/heads",
    "refs",
    "remotes",
    "main/x",
    "heads/main/x",
    "..",
    "../HEAD",
    "/etc/passwd",
    "heads/../../HEAD",
    "refs//heads/main",
    "[main]",
    "",
    " ",
    "~",
    "^",
    "\x1b[31m\u202ered",
    "0001-01-01T00:00:00+23:59",
)


@pytest.mark.parametrize("at", NOT_THERE, ids=lambda at: ascii(at[:20]))
def test_whatever_is_no_commit_is_not_there(ledger: Ledger, at: str) -> None:
    room = ledger.create_room("Here")
    with pytest.raises(NotFound) as caught:
        room.messages(at=at)
    assert len(caught.value.message) < 400
    assert caught.value.message.isprintable()
    assert all(len(str(value)) < 300 for value in caught.value.fields.values())
    msgspec.json.encode(caught.value.as_dict())


def test_what_means_a_commit_is_found(ledger: Ledger, git: Git) -> None:
    ledger.create_room("Here").post("Ann", "one")
    ledger.flush()
    main = refs.read_main(ledger.layout)
    before = git(ledger.root, "rev-parse", "main~2").strip()
    git(ledger.root, "tag", "-a", "-m", "noted", "v1", "main")
    git(ledger.root, "branch", "side/one", "main")
    for at in ("HEAD", "@", "main", "heads/main", "refs/heads/main", "v1", "side/one", main[:12]):
        assert ledger.commit_at(at) == main
        assert ledger.commit_at(f"{at}~0") == main
        assert ledger.commit_at(f"{at}~2") == ledger.commit_at(f"{at}^~01") == before
    git(ledger.root, "pack-refs", "--all")
    assert ledger.commit_at("side/one") == main


def test_an_ambiguous_beginning_of_an_id_is_a_conflict(ledger: Ledger) -> None:
    room = ledger.create_room("Here")
    room.post_many([{"author": "Ann", "body": str(n)} for n in range(1500)])
    commits = [entry.commit for entry in ledger.log()]
    starts: dict[str, int] = {}
    for commit in commits:
        starts[commit[:4]] = starts.get(commit[:4], 0) + 1
    shared = [start for start, count in starts.items() if count > 1]
    for start in shared[:1]:
        with pytest.raises(Conflict) as caught:
            room.messages(at=start)
        assert caught.value.code == "ambiguous"
        assert len(caught.value.fields["candidates"]) > 1
    assert len(room.messages(at=commits[0][:12])) == 1500


def test_binary_and_large_files_of_others_are_named_in_a_patch(ledger: Ledger, git: Git) -> None:
    ledger.create_room("Here")
    ledger.flush()
    (ledger.root / "picture.bin").write_bytes(b"\0" * 100)
    (ledger.root / "words.txt").write_text("one\ntwo")
    git(ledger.root, "add", "-A")
    git(ledger.root, "commit", "-q", "-m", "by hand")
    patch = ledger.log(limit=1, patch=True)[0].patch or ""
    assert "+++ b/picture.bin\n(not shown: 0 bytes before, 100 now)\n" in patch
    assert "+++ b/words.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n" in patch
