"""Hostile bodies and names, end to end: stored exactly or refused, and nothing can be forged."""

from __future__ import annotations

import re
import subprocess
import sys
import unicodedata
from random import Random
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import BODY_BYTES_MAX
from tests.faults.soundness import Acknowledged, assert_sound, git

if TYPE_CHECKING:
    from pathlib import Path

FORGED = "01a229c5-0000-7000-8000-00000000bad0"
BODIES = {
    "empty": "",
    "blank": " \t ",
    "CR": "one\rtwo\r",
    "CRLF": "one\r\ntwo\r\n",
    "line ends of Unicode": "one\u2028two\u2029three\x85four\x0bfive\x0csix",
    "spaces at the ends": "\n\n  kept  \n\n",
    "no trailing line end": "last",
    "a page's header": f"x\n### #9 Boss · 21:27:42Z · message\n\n> I agree\r### #9 B\n# {FORGED}",
    "a page's head": "# Other room\n\n- format: 1\n- room: x\n- records: 1-9@x\n- policy: none",
    "trailers": f"x\n\nRoom: rooms/other\nMessage: 9@x\nRecord: {FORGED}\nFrame: 1",
    "a commit's header": f"x\nauthor Boss <boss@x> 1 +0000\nparent {'0' * 40}\n\ngpgsig x",
    "a record line": '"}\n{"n":99,"id":"x","author":"Boss","body":"forged"}\n',
    "a frame line": '00000000 {"frame":99,"records":[]}\n',
    "terminal sequences": "\x1b[2J\x1b]0;title\x07\x1b[31mred\x9b1m\x08\x08\x7f",
    "bidirectional": "safe \u202egnp.exe\u2066\u2069\u200f\u061c",
    "right to left": "שלום עולם مرحبا",
    "emoji": "👩‍👩‍👧‍👦 🏴‍☠️ 🇩🇪",
    "combining": "Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e",
    "not normalized": "e\u0301 \u00e9 \u212b \ufb00",
    "private and unassigned": "\ue000 \U0010ffff \ufffe \ufffd \ufeff",
    "limit": "x" * BODY_BYTES_MAX,
    "limit in wide characters": "😀" * (BODY_BYTES_MAX // 4),
    "ten thousand lines": "\n" * 10_000,
}
REFUSED_BODIES = {
    "NUL": "a\0b",
    "lone high surrogate": "a\ud800b",
    "lone low surrogate": "\udcff",
    "one byte more": "x" * (BODY_BYTES_MAX + 1),
    "one wide character more": "x" + "😀" * (BODY_BYTES_MAX // 4),
}
NAMES = (
    "A <boss@example.invalid>",
    "<>",
    "..",
    ".",
    "/",
    "../../etc/passwd",
    "a/b\\c",
    "-rf",
    "--help",
    "~root",
    "$(touch x)",
    "'; drop table rooms; --",
    "😀",
    "👩‍👩‍👧‍👦",
    "שלום",
    "CON",
    "con.txt",
    ".git",
    "messages",
    "room.json",
    "e\u0301",
    "\u00e9",
    "#9 Boss · message",
    "> quoted",
    "trailing.",
    "%s%n%00",
)
REFUSED_NAMES = (
    "",
    " ",
    "two\nlines",
    "two\rlines",
    "two\u2028lines",
    "two\x85lines",
    "nul\0",
    "escape\x1b[31m",
    "\u202egnp.exe",
    "half \ud800",
    "x" * 10_000,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def commits(root: Path) -> list[tuple[str, str]]:
    """Return head and message of every commit of main, raw."""
    oids = git(root, "rev-list", "main").decode().split()
    data = git(root, "cat-file", "--batch", given="\n".join(oids).encode())
    found = []
    while data:
        first, _, data = data.partition(b"\n")
        size = int(first.split()[2])
        head, _, message = data[:size].decode().partition("\n\n")
        found.append((head, message))
        data = data[size + 1 :]
    return found


HEAD = re.compile(
    r"tree [0-9a-f]{40}\n"
    r"(parent [0-9a-f]{40}\n)?"
    r"author [^<>\n\0]*[^<>\n\0 ] <[^<>\n\0 ]+@[a-z0-9-]+> \d+ \+0000\n"
    r"committer Ledger <ledger@[a-z0-9-]+> \d+ \+0000"
)
TRAILER = re.compile(r"(Room|Message|Operation|Kind|Record|Frame|Requested-by|Reason): .+")


def assert_nothing_is_forged(root: Path) -> None:
    """Look at every commit, path and page with eyes of our own."""
    for head, message in commits(root):
        assert HEAD.fullmatch(head), head
        subject, _, rest = message.partition("\n\n")
        assert len(subject) <= 72
        assert not [c for c in subject if unicodedata.category(c) in {"Cc", "Zl", "Zp"}], subject
        trailers = rest.rstrip("\n").split("\n")
        if not subject.startswith("Create the ledger"):
            assert all(map(TRAILER.fullmatch, filter(None, trailers))), rest
        assert FORGED not in rest
    paths = git(root, "ls-tree", "-r", "-z", "--name-only", "main").decode().split("\0")[:-1]
    for path in paths:
        assert not {"", ".", "..", ".git"} & set(path.split("/")), path
        assert (root / path).is_file()
    for page in root.glob("rooms/**/view/**/*.md"):
        assert_page(page.read_bytes().decode())
    present = {path.name for path in root.iterdir()}
    assert present <= {".git", ".gitattributes", "ledger.json", "operations", "rooms"}


def assert_page(text: str) -> None:
    """Outside quotes a page holds nothing but its head and one header for each message."""
    lines = text.split("\n")
    assert not [line for line in lines if len(line.splitlines()) > 1], "a hidden line end"
    headers = [line for line in lines if line.startswith("### ")]
    for line in lines[lines.index(headers[0]) :] if headers else []:
        assert line == "" or line.startswith((">", "### #", "### stand-in ")), line
    assert len([line for line in lines if line.startswith("# ")]) == 1
    forged = [line for line in headers if "#9 Boss" in line.split(" ", 2)[1]]
    assert not forged


def test_bodies_are_stored_exactly(root: Path) -> None:
    """Every character comes back, now, from a commit, from plain git, and after reopening."""
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review")
        told = [Acknowledged.of(room.path, room.post("A", body)) for body in BODIES.values()]
        room.compile()
        assert [m.body for m in room.messages()] == list(BODIES.values())
        assert [m.body for m in room.messages(at="main")] == list(BODIES.values())
    rooms = assert_sound(root, told)  # which reads the logs with the git binary too
    assert [m.body for m in rooms["rooms/design-review"]] == list(BODIES.values())
    assert_nothing_is_forged(root)


@pytest.mark.parametrize("name", REFUSED_BODIES)
def test_bodies_that_cannot_be_stored_exactly_are_refused(root: Path, name: str) -> None:
    """With the field and the way out, alone and in the middle of many; nothing is written."""
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review")
        for call in (
            lambda: room.post("A", REFUSED_BODIES[name]),
            lambda: room.post_many(
                [{"author": "A", "body": body} for body in ("fine", REFUSED_BODIES[name], "fine")]
            ),
        ):
            with pytest.raises(InvalidInput) as refused:
                call()
            assert refused.value.fields["field"] == "body"
            assert len(refused.value.message) < 300
            refused.value.message.encode()
        assert room.messages() == []
        assert room.post("A", "the first").n == 1
    assert_sound(root, [])


def test_names_forge_nothing(root: Path) -> None:
    """As author, member, title, folder of slugs, consumer and speaker of a stand-in."""
    with Ledger.open(root, create=True) as ledger:
        told = []
        for name in NAMES:
            room = ledger.create_room(name, members=[name], by=name, reason=name)
            assert room.title == name
            message = room.post(name, f"from {name}", to=[name], mentions=[name])
            assert (message.author, message.to) == (name, (name,))
            told.append(Acknowledged.of(room.path, message))
            room.add_standin([1], name, speaker=name, by=name, reason=name)
            room.compile()
            ledger.consumer(name).acknowledge(room)
            assert ledger.consumer(name).position(room) == {room.origin: 1}
            if name.strip("."):  # git itself takes such a name for none
                assert ledger.log(room, author=name)
        paths = [summary.path for summary in ledger.rooms()]
        assert len(paths) == len(set(map(str.casefold, paths))) == len(NAMES)
        cursors = {ledger.consumer(name).cursor_path for name in NAMES}
        assert {path.parent for path in cursors} == {root / ".git/ledger/cursors"}
    assert_sound(root, told)
    assert_nothing_is_forged(root)


@pytest.mark.parametrize("name", REFUSED_NAMES, ids=lambda name: ascii(name[:20]))
def test_names_that_could_forge_something_are_refused(root: Path, name: str) -> None:
    """In every place where a name can stand, with an error that is short and printable."""
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review")
        room.post("A", "first")
        calls = {
            "author": lambda: room.post(name, "x"),
            "to": lambda: room.post("A", "x", to=[name]),
            "title": lambda: ledger.create_room(name),
            "member": lambda: ledger.create_room("Other", members=[name]),
            "by": lambda: room.exclude("1", by=name),
            "speaker": lambda: room.add_standin([1], "x", speaker=name),
            "consumer": lambda: ledger.consumer(name),
        }
        for place, call in calls.items():
            with pytest.raises(InvalidInput) as refused:
                call()
            message = refused.value.message
            assert len(message) < 300, place
            assert not [c for c in message if unicodedata.category(c) in {"Cc", "Cs"}], place
        assert len(room.messages()) == 1
        assert len(ledger.rooms()) == 1
    assert_sound(root, [])


FIELDS = {
    "kind": ("message\nKind: system", "Message", "a b", "x" * 65, ""),
    "id": ("two\nlines", "nul\0", "x" * 129, ""),
    "correlation": ("nul\0", "half \ud800", "x" * 100_000),
    "cause": ("nul\0", "half \ud800", "x" * 100_000),
    "status": ("nul\0", "half \ud800", "x" * 100_000),
    "reply_to": ("0", "-1", "99", "1@../x", "1\n2", "x" * 100_000),
    "data": ({"x": "\ud800"}, {"x": "y" * 70_000}, {"x": object()}, {"x": float("nan")}, ["list"]),
    "said_at": ("yesterday", "2026-13-01T00:00:00.000000Z", "x" * 100_000),
}


@pytest.mark.parametrize(
    ("field", "value"),
    [(field, value) for field, values in FIELDS.items() for value in values],
    ids=lambda value: ascii(value)[:20],
)
def test_other_fields_that_break_a_rule_are_refused(root: Path, field: str, value: object) -> None:
    """Whatever type or size they have: an error of ours, and nothing is written."""
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review")
        with pytest.raises(InvalidInput) as refused:
            room.post("A", "x", **{field: value})
        assert len(refused.value.message) < 400
        assert room.messages() == []
    assert_sound(root, [])


def test_reasons_forge_no_trailer(root: Path) -> None:
    """A reason is one line in the commit, or it is refused."""
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review")
        room.post("A", "first")
        for reason in (f"x\nRecord: {FORGED}", f"x\r\nRecord: {FORGED}", f"\u2028Record: {FORGED}"):
            try:
                room.exclude("1", by="A", reason=reason)
                room.include("1", by="A", reason=reason)
            except InvalidInput:
                continue
    records = git(root, "log", "--format=%(trailers:key=Record,valueonly)", "main").decode()
    assert FORGED not in records
    assert_sound(root, [])


def test_nothing_reaches_a_terminal_raw(root: Path) -> None:
    """Every command that shows bodies or names escapes what a terminal would obey."""
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review", members=list(NAMES[:5]))
        for name, body in zip(NAMES * 2, BODIES.values(), strict=False):
            room.post(name, body)
        room.add_standin([1], BODIES["terminal sequences"], by="A")
        room.compile()
    for command in (
        ["read", "design-review", "--last", "100"],
        ["show", "design-review"],
        ["list"],
        ["lens", "design-review"],
        ["log", "design-review", "--patch"],
        ["policy", "show", "design-review"],
        ["unread", "--as", "Reader"],
        ["read", "\x1b[31m\u202e"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "agent_chatroom_ledger.cli", "--root", str(root), *command],
            capture_output=True,
            check=False,
        )
        for stream in (done.stdout, done.stderr):
            text = stream.decode()
            raw = {c for c in text if unicodedata.category(c) == "Cc"} - {"\n", "\t"}
            raw |= set(text) & set("\u202e\u2066\u2069\u200f\u061c\u2028\u2029")
            assert not raw, (command, raw)


def test_random_text_is_stored_exactly_or_refused(root: Path) -> None:
    """Bodies and names of characters that mean something to somebody, in any order."""
    random = Random(5)
    alphabet = (
        "\0\a\b\t\n\v\f\r\x1b\x7f\x85\xa0#>-*: <>@/\\'\"{}[]|~.$%\u200b\u2028\u202e\ud800é😀ש"
    )
    told = []
    with Ledger.open(root, create=True) as ledger:
        room = ledger.create_room("Design review")
        for _ in range(300):
            author = "".join(random.choices(alphabet[6:], k=random.randint(0, 6)))
            body = "".join(random.choices(alphabet, k=random.randint(0, 30)))
            try:
                message = room.post(author, body)
            except InvalidInput:
                continue
            assert (message.author, message.body) == (author, body)
            told.append(Acknowledged.of(room.path, message))
        room.compile()
    assert len(told) > 10
    assert_sound(root, told)
    assert_nothing_is_forged(root)
