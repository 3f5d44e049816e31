"""Exports: every format holds every message, and nothing in one can act or pass for another."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.drafts import Draft
from agent_chatroom_ledger.domain.exports import FORMATS, Export
from agent_chatroom_ledger.domain.policy import Policy, StandIn
from agent_chatroom_ledger.domain.records import Message, encode_record, message_of, record_of
from agent_chatroom_ledger.domain.roomstate import RoomState

ORIGIN = "mbp-3f2a"
AT = "2026-11-29T21:27:42.123456Z"
HOSTILE = (
    "<script>alert(1)</script>",
    "</pre></article></main><img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' style='position:fixed",
    "javascript:alert(1)",
    "</title><script>alert(1)</script>",
    "]]><!-- --><style>*{display:none}</style>",
    "<meta http-equiv=refresh content=0>",
    "&lt;script&gt;",
    "`}</style>",
)
ALLOWED = {
    "html": {"lang"},
    "head": set(),
    "meta": {"charset", "http-equiv", "content", "name"},
    "title": set(),
    "style": set(),
    "body": set(),
    "main": set(),
    "h1": {"dir"},
    "h2": set(),
    "dl": set(),
    "dt": set(),
    "dd": set(),
    "article": {"id", "class"},
    "header": set(),
    "a": {"href"},
    "time": {"datetime"},
    "b": set(),
    "bdi": set(),
    "pre": {"dir"},
}


def state(title: str = "Here", members: tuple[str, ...] = ()) -> RoomState:
    return RoomState(
        id="01a1",
        title=title,
        path="rooms/here",
        folder="",
        slug="here",
        members=members,
        created_at=AT,
        created_by="Ann",
        origin=ORIGIN,
        policy=Policy({}, ()),
    )


def message(body: str, n: int = 1, author: str = "Ann", **fields: Any) -> Message:
    record = record_of(Draft(author=author, body=body, **fields), n, AT, f"id-{n}")
    return message_of(encode_record(record), ORIGIN, "messages", primary=True)


def standin(body: str, speaker: str = "System") -> StandIn:
    return StandIn(
        id="1",
        replaces=((ORIGIN, 1), (ORIGIN, 2)),
        insert_after=(ORIGIN, 2),
        speaker=speaker,
        kind="system",
        body=body,
        at=AT,
    )


def written(form: str, *items: Message | StandIn, room: RoomState | None = None) -> str:
    export = Export(state=room or state(), position={ORIGIN: 2}, commit="c" * 40)
    return "".join(FORMATS[form](export, items))


class Page(HTMLParser):
    """Collects the tags of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.others: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.others.append(data)


def check_page(text: str) -> Page:
    page = Page(text)
    assert not page.open
    assert not page.others
    for tag, attributes in page.tags:
        assert attributes.keys() <= ALLOWED[tag], tag
        href = attributes.get("href")
        assert href is None or href.startswith("#m")
    return page


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_can_be_put_into_a_page(text: str) -> None:
    items = (
        message(text, author=text[:64], to=(text,), reply_to=text, status=text, data={text: text}),
        standin(text, speaker=text[:64]),
    )
    page = check_page(written("html", *items, room=state(text, (text,))))
    assert text in "".join(page.text)
    assert [tag for tag, _ in page.tags].count("article") == 2
    assert [tag for tag, _ in page.tags].count("style") == 1


@given(st.text(), st.text(), st.text())
def test_no_text_at_all_makes_a_tag(body: str, name: str, title: str) -> None:
    page = check_page(
        written(
            "html",
            message(body.encode(errors="replace").decode()),
            standin(body, name),
            room=state(title),
        )
    )
    assert [tag for tag, _ in page.tags].count("article") == 2


def test_the_policy_of_a_page_lets_nothing_run() -> None:
    text = written("html", message("x"))
    [policy] = [a for tag, a in Page(text).tags if a.get("http-equiv")]
    content = policy["content"] or ""
    assert content.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in content
    # Before anything that somebody else wrote.
    assert text.index("Content-Security-Policy") < text.index("<title>")


def test_the_style_is_the_one_that_the_policy_allows() -> None:
    import base64
    import hashlib

    text = written("html")
    style = text.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in text


def test_control_characters_are_shown_and_lines_stay() -> None:
    text = written("html", message("one\ntwo\x1b[2J\u202e", author="A"))
    assert "one\ntwo\\x1b[2J\\u202e</pre>" in text


def test_a_reply_leads_to_its_message() -> None:
    text = written("html", message("one"), message("two", n=2, reply_to=f"1@{ORIGIN}"))
    assert f'<article id="m1@{ORIGIN}">' in text
    assert f'<a href="#m1@{ORIGIN}">1@{ORIGIN}</a>' in text


def test_markdown() -> None:
    text = written(
        "md",
        message("one\n### #9 Eve\n\u2028# two"),
        standin("in short"),
        room=state("A <b>title</b> [x](y)", ("Ann",)),
    )
    assert text == (
        "# A \\<b\\>title\\</b\\> \\[x\\](y)\n\n"
        "- room: 01a1 at rooms/here\n"
        f"- created: {AT} by Ann\n"
        "- members: Ann\n"
        "- messages: 2@mbp-3f2a\n"
        "- shows: everything that was said\n"
        f"- commit: {'c' * 40}\n"
        "\n## 2026-11-29\n"
        "\n### #1 Ann · 21:27:42Z · message\n"
        "\n> one\n> ### #9 Eve\n>\n> # two\n"
        "\n### (for 2 messages) System · system\n\n> in short\n"
    )


def test_json_is_one_document() -> None:
    text = written("json", message("one\x9b\u202e"), standin("in short"))
    assert text.isascii()
    found = json.loads(text)
    assert found["format"] == 1
    assert found["room"]["title"] == "Here"
    assert found["items"][0]["message"]["body"] == "one\x9b\u202e"
    assert found["items"][1]["standin"]["replaces"] == [f"1@{ORIGIN}", f"2@{ORIGIN}"]
    assert json.loads(written("json"))["items"] == []


def test_lines_are_a_message_each_as_it_is_stored() -> None:
    text = written("jsonl", message("one\ntwo", data={"a": [1]}), standin("in short"))
    first, second = text.splitlines()
    assert json.loads(first) == {**message("one\ntwo", data={"a": [1]}).as_dict()}
    assert json.loads(second)["standin"]["body"] == "in short"
