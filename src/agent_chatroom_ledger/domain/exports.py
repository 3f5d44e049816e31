"""A room written out for others: Markdown, JSON, JSON Lines, or one HTML page.

Everything is text that somebody else wrote. In HTML every name, title and body is escaped, control
characters are shown, and a Content-Security-Policy lets nothing run or load, should an escape ever
be missing; the page needs no script and no other file. In Markdown every line of a body is quoted,
so that none can pass for a heading; what a body says in Markdown stays as it is.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent_chatroom_ledger.domain.clock import from_datetime
from agent_chatroom_ledger.domain.display import terminal_safe
from agent_chatroom_ledger.domain.pages import quoted
from agent_chatroom_ledger.domain.policy import StandIn
from agent_chatroom_ledger.domain.positions import encode_position
from agent_chatroom_ledger.domain.references import full_ref, range_ref
from agent_chatroom_ledger.domain.roomstate import RoomState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agent_chatroom_ledger.domain.lenses import LensItem
    from agent_chatroom_ledger.domain.policy import Policy
    from agent_chatroom_ledger.domain.records import Message

FORMAT: Final = 1

# JSON escapes C0 controls by itself; these could drive a terminal or turn the direction of text.
_HIDDEN: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")
_HTML: Final = {ord(c): f"&#{ord(c)};" for c in "&<>\"'`="}
_REF: Final = re.compile(r"[1-9]\d{0,7}@[a-z0-9][a-z0-9-]*\Z", re.ASCII)
_STYLE: Final = (
    "body{font:1rem/1.5 system-ui,sans-serif;max-width:50rem;margin:2rem auto;padding:0 1rem;"
    "color:#1a1a1a;background:#fff}"
    "h1{font-size:1.5rem}h2{font-size:1rem;color:#595959;border-bottom:1px solid #ddd}"
    "article{margin:1rem 0}header{color:#595959;font-size:.9rem}"
    "pre{white-space:pre-wrap;overflow-wrap:anywhere;font:inherit;margin:.2rem 0 0;"
    "padding-left:.8rem;border-left:3px solid #ddd}"
    "article.standin pre{border-left-style:dashed}b{color:#1a1a1a}a{color:inherit}"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:0 1rem;color:#595959}dd{margin:0}"
    "@media(prefers-color-scheme:dark){body{color:#e6e6e6;background:#1a1a1a}b{color:#e6e6e6}"
    "header,h2,dl{color:#a6a6a6}pre,h2{border-color:#444}}"
)
_STYLE_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode("ascii")
_CONTENT_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"
)


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """What is written out: a room's state, how far its messages go, and from which commit.

    ``commit`` is empty for the present. ``shown`` says that the items are what the policy leaves
    and puts in place, rather than everything that was said.
    """

    state: RoomState
    position: Mapping[str, int]
    commit: str = ""
    shown: bool = False


def export_markdown(export: Export, items: Iterable[LensItem]) -> Iterator[str]:
    """Yield a room as Markdown, day by day."""
    yield f"# {_markdown(export.state.title)}\n\n"
    for name, value in _facts(export):
        yield f"- {name}: {_markdown(value)}\n"
    day = ""
    for item in items:
        if isinstance(item, StandIn):
            count = len(item.replaces)
            yield (
                f"\n### (for {count} message{'s' if count != 1 else ''}) "
                f"{_markdown(item.speaker)} · {_markdown(item.kind)}\n{quoted(item.body)}"
            )
            continue
        said = item.said_at or item.at
        if f"{said:%Y-%m-%d}" != day:
            day = f"{said:%Y-%m-%d}"
            yield f"\n## {day}\n"
        parts = [f"#{item.ref} {_markdown(item.author)}", f"{said:%H:%M:%S}Z", item.kind]
        parts += [f"to {_markdown(', '.join(item.to))}"] if item.to else []
        parts += [f"re {_markdown(item.reply_to)}"] if item.reply_to else []
        yield f"\n### {' · '.join(parts)}\n{quoted(item.body)}"


def export_json(export: Export, items: Iterable[LensItem]) -> Iterator[str]:
    """Yield a room as one JSON document, in parts."""
    state = export.state
    head = {
        "format": FORMAT,
        "room": {
            "id": state.id,
            "title": state.title,
            "path": state.path,
            "members": list(state.members),
            "origin": state.origin,
            "created_at": state.created_at,
            "created_by": state.created_by,
        },
        "commit": export.commit or None,
        "position": dict(export.position),
        "policy": _policy(state.policy),
        "shown": export.shown,
    }
    yield f'{_json(head)[:-1]},"items":['
    for number, item in enumerate(items):
        yield ("," if number else "") + "\n" + _json(_item(item))
    yield "\n]}\n"


def export_lines(export: Export, items: Iterable[LensItem]) -> Iterator[str]:
    """Yield a room as JSON Lines: a message a line, as it is stored; stand-ins under a key."""
    del export
    for item in items:
        yield _json(item.as_dict() if not isinstance(item, StandIn) else _item(item)) + "\n"


def export_html(export: Export, items: Iterable[LensItem]) -> Iterator[str]:
    """Yield a room as one HTML page that needs nothing else."""
    title = _html(export.state.title)
    yield (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_CONTENT_POLICY}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<h1 dir="auto">{title}</h1>\n<dl>\n'
    )
    for name, value in _facts(export):
        yield f"<dt>{_html(name)}</dt><dd>{_html(value)}</dd>\n"
    yield "</dl>\n"
    day = ""
    for item in items:
        if isinstance(item, StandIn):
            yield _standin_html(item)
            continue
        said = item.said_at or item.at
        if f"{said:%Y-%m-%d}" != day:
            day = f"{said:%Y-%m-%d}"
            yield f"<h2>{day}</h2>\n"
        yield _message_html(item)
    yield "</main>\n</body>\n</html>\n"


def _message_html(message: Message) -> str:
    said = message.said_at or message.at
    ref = _html(message.full_ref)
    notes = "" if message.kind == "message" else f" [{_html(message.kind)}]"
    if message.to:
        notes += f" → <bdi>{_html(', '.join(message.to))}</bdi>"
    if message.reply_to:
        target = _html(message.reply_to)
        linked = _REF.match(message.reply_to) is not None
        notes += f' re <a href="#m{target}">{target}</a>' if linked else f" re {target}"
    further = {name: value for name, value in message.as_dict().items() if name in _FURTHER}
    details = f"<pre>{_html(_json(further))}</pre>\n" if further else ""
    return (
        f'<article id="m{ref}">\n<header><a href="#m{ref}">#{_html(message.ref)}</a> '
        f'<time datetime="{from_datetime(said)}">{said:%H:%M:%S}Z</time> '
        f"<b><bdi>{_html(message.author)}</bdi></b>{notes}</header>\n"
        f'<pre dir="auto">{_html(message.body, lines=True)}</pre>\n{details}</article>\n'
    )


def _standin_html(standin: StandIn) -> str:
    count = len(standin.replaces)
    return (
        f'<article class="standin">\n<header>for {count} message{"s" if count != 1 else ""} '
        f"<b><bdi>{_html(standin.speaker)}</bdi></b> [{_html(standin.kind)}]</header>\n"
        f'<pre dir="auto">{_html(standin.body, lines=True)}</pre>\n</article>\n'
    )


# What a message may hold beside what its heading says, shown as JSON.
_FURTHER: Final = ("correlation", "cause", "status", "artifacts", "data", "placed_from")


def _facts(export: Export) -> Iterator[tuple[str, str]]:
    state = export.state
    yield "room", f"{state.id} at {state.path}"
    yield "created", f"{state.created_at} by {state.created_by}"
    if state.members:
        yield "members", ", ".join(state.members)
    yield "messages", encode_position(export.position)
    yield "shows", "what the policy leaves" if export.shown else "everything that was said"
    if export.commit:
        yield "commit", export.commit


def _html(text: str, *, lines: bool = False) -> str:
    """Escape text for an element or a quoted attribute, with its control characters shown."""
    return terminal_safe(text, lines=lines).translate(_HTML)


def _markdown(text: str) -> str:
    """Make foreign text one line of a heading, in which it can neither be a tag nor a link."""
    safe = terminal_safe(text, lines=False).replace("·", "\\xb7")
    return re.sub(r"([\\`*_\[\]<>&!])", r"\\\1", safe)


def _json(document: object) -> str:
    text = msgspec.json.encode(document).decode()
    return _HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _item(item: LensItem) -> dict[str, Any]:
    if isinstance(item, StandIn):
        return {"standin": _standin(item)}
    return {"message": item.as_dict()}


def _standin(standin: StandIn) -> dict[str, Any]:
    return {
        "id": standin.id,
        "replaces": [full_ref(*place) for place in standin.replaces],
        "insert_after": full_ref(*standin.insert_after),
        "speaker": standin.speaker,
        "kind": standin.kind,
        "body": standin.body,
        "at": standin.at,
    }


def _policy(policy: Policy) -> dict[str, Any]:
    return {
        "excluded": [
            range_ref(origin, first, last)
            for origin, ranges in sorted(policy.excluded.items())
            for first, last in ranges
        ],
        "standins": [_standin(standin) for standin in policy.standins],
    }


FORMATS: Final[Mapping[str, Callable[[Export, Iterable[LensItem]], Iterator[str]]]] = {
    "md": export_markdown,
    "json": export_json,
    "jsonl": export_lines,
    "html": export_html,
}
