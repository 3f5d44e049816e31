"""Renderings of a lens for a model's context: JSON, Markdown, lists of chat messages.

Whoever speaks is named by us and never by a body. In Markdown every line of a body is quoted. In a
list of chat messages a body stands between two marks that it cannot hold, since they are made from
its own hash; and all are of the role ``user``, so that nothing said in a room is the system's word
or the model's own. The size of a rendering is additive: an item that shows another text changes it
by the difference of the two texts' sizes (tests/domain/test_renderings.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.display import terminal_safe
from agent_chatroom_ledger.domain.lenses import LensItem
from agent_chatroom_ledger.domain.pages import quoted
from agent_chatroom_ledger.domain.policy import StandIn
from agent_chatroom_ledger.domain.references import full_ref
from agent_chatroom_ledger.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

_ENCODER: Final = msgspec.json.Encoder()
_FENCE_CHARS: Final = 12
_NAME_CHARS_MAX: Final = 64
_TAG_CHARS: Final = 16
_PLAIN_NAME: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{_NAME_CHARS_MAX}}}", re.ASCII)
_TAGGED: Final = re.compile(rf"-[0-9a-f]{{{_TAG_CHARS}}}\Z", re.ASCII)


class Shown(msgspec.Struct, frozen=True):
    """An item of a lens with the level that is shown of it, and that level's text."""

    item: LensItem
    level: int
    text: str


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of rendering: what stands around and between the items, and how each is written.

    ``text_chars`` gives what a text takes inside an item, in characters.
    """

    name: str
    opening: str
    closing: str
    between: str
    item: Callable[[Shown], str]
    text_chars: Callable[[str], int]

    def joined(self, items: Iterable[str]) -> str:
        """Return the whole rendering of items that were written already."""
        return f"{self.opening}{self.between.join(items)}{self.closing}"


def json_text(value: object) -> str:
    """Return a value as JSON on one line, without blanks between its parts."""
    return _ENCODER.encode(value).decode()


def json_chars(text: str) -> int:
    """Return how many characters a text takes inside a JSON string."""
    data = _ENCODER.encode(text)
    return (len(data) if data.isascii() else len(data.decode())) - 2


def facts(shown: Shown) -> dict[str, Any]:
    """Return an item as JSON values: who, when, what kind, which level, and its text."""
    item = shown.item
    if isinstance(item, StandIn):
        return {
            "standin": item.id,
            "replaces": [full_ref(*one) for one in item.replaces],
            "author": item.speaker,
            "kind": item.kind,
            "at": item.at,
            "selected_version": shown.level,
            "body": shown.text,
        }
    found: dict[str, Any] = {
        "ref": item.ref,
        "author": item.author,
        "kind": item.kind,
        "at": from_datetime(item.said_at or item.at),
        "selected_version": shown.level,
    }
    if item.to:
        found["to"] = item.to
    if item.reply_to is not None:
        found["reply_to"] = item.reply_to
    found["body"] = shown.text
    return found


def fence_of(text: str) -> str:
    """Return a mark that a text does not hold; the same text always gives the same."""
    data = text.encode()
    while True:
        data = sha256(data).digest()
        mark = data.hex()[:_FENCE_CHARS]
        if mark not in text:
            return mark


def fenced(shown: Shown) -> str:
    """Return an item as text between two marks; only the first line speaks of it."""
    item, mark = shown.item, fence_of(shown.text)
    if isinstance(item, StandIn):
        kind, what = "standin", f"id={_quote(item.id)} author={_quote(item.speaker)}"
        when = item.at
    else:
        kind, what = "message", f"ref={_quote(item.ref)} author={_quote(item.author)}"
        if item.to:
            what += f" to={_quote(', '.join(item.to))}"
        if item.reply_to is not None:
            what += f" reply_to={_quote(item.reply_to)}"
        what += f' version="{shown.level}"'
        when = from_datetime(item.said_at or item.at)
    head = f"<{kind} {what} kind={_quote(item.kind)} at={_quote(when)} fence={_quote(mark)}>"
    return f"{head}\n{shown.text}\n</{kind} fence={_quote(mark)}>"


def _quote(text: str) -> str:
    """Return a text in quotes on one line, which can end neither the quotes nor the mark."""
    safe = json_text(terminal_safe(text, lines=False))
    return safe.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def participant_name(author: str) -> str:
    """Return an author as OpenAI's ``name`` takes it; two authors never share one."""
    if _PLAIN_NAME.fullmatch(author) and not _TAGGED.search(author):
        return author
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", author).strip("-")
    tag = sha256(author.encode()).hexdigest()[:_TAG_CHARS]
    return f"{plain[: _NAME_CHARS_MAX - _TAG_CHARS - 1] or 'member'}-{tag}"


def _json_item(shown: Shown) -> str:
    return json_text(facts(shown))


def _markdown_item(shown: Shown) -> str:
    item = shown.item
    if isinstance(item, StandIn):
        refs = " ".join(f"#{full_ref(*one)}" for one in item.replaces)
        parts = [f"stand-in {_heading(item.id)} for {refs}", _heading(item.speaker), item.kind]
    else:
        said = item.said_at or item.at
        parts = [f"#{item.ref} {_heading(item.author)}", f"{said:%Y-%m-%d %H:%M:%S}Z", item.kind]
        if item.to:
            parts.append("to " + ", ".join(map(_heading, item.to)))
        if item.reply_to is not None:
            parts.append(f"re {_heading(item.reply_to)}")
        parts.append(f"version {shown.level}")
    return f"### {' · '.join(parts)}\n{quoted(shown.text)}"


def _heading(text: str) -> str:
    return terminal_safe(text, lines=False).replace("·", "\\xb7")


def _openai_item(shown: Shown) -> str:
    item = shown.item
    author = item.speaker if isinstance(item, StandIn) else item.author
    content = fenced(shown)
    return json_text({"role": "user", "name": participant_name(author), "content": content})


def _anthropic_item(shown: Shown) -> str:
    return json_text({"role": "user", "content": fenced(shown)})


def _list(name: str, item: Callable[[Shown], str]) -> Form:
    return Form(name=name, opening="[", closing="]", between=",", item=item, text_chars=json_chars)


JSON: Final = _list("json", _json_item)
_FORMS: Final = (
    JSON,
    Form(
        name="markdown",
        opening="",
        closing="",
        between="\n",
        item=_markdown_item,
        text_chars=lambda text: len(quoted(text)),
    ),
    _list("openai", _openai_item),
    _list("anthropic", _anthropic_item),
)
FORMS: Final = {form.name: form for form in _FORMS}
FormName: TypeAlias = str


def form_of(name: FormName | Form) -> Form:
    """Return a form by its name: json, markdown, openai or anthropic."""
    if isinstance(name, Form):
        return name
    found = FORMS.get(name)
    if found is None:
        raise InvalidInput(
            f"a lens is rendered as {', '.join(FORMS)}, not as {str(name)[:40]!r}", field="format"
        )
    return found
