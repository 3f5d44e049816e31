"""The events of four clients, read into one form and answered in each client's own.

What a client sends is read leniently: a field of an unexpected type counts as absent, and an event
that is not known is one about which there is nothing to say.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from agent_chatroom_ledger.domain.display import has_control

START: Final = "start"
PROMPT: Final = "prompt"
TOOL: Final = "tool"
STOP: Final = "stop"
OTHER: Final = "other"

# Clients by the names that presence and `rooms setup` know them by.
NAMES: Final = {
    "claude": "claude-code",
    "claude-code": "claude-code",
    "codex": "codex",
    "gemini": "gemini-cli",
    "gemini-cli": "gemini-cli",
    "cursor": "cursor",
}
_KINDS: Final = {
    "SessionStart": START,
    "UserPromptSubmit": PROMPT,
    "PostToolUse": TOOL,
    "PostToolUseFailure": TOOL,
    "Stop": STOP,
    "BeforeAgent": PROMPT,
    "AfterTool": TOOL,
    "AfterAgent": STOP,
    "sessionStart": START,
    "beforeSubmitPrompt": PROMPT,
    "postToolUse": TOOL,
    "stop": STOP,
}
_GEMINI: Final = frozenset({"BeforeAgent", "AfterTool", "AfterAgent"})
_CURSOR: Final = frozenset({"sessionStart", "beforeSubmitPrompt", "postToolUse", "stop"})
# How Claude Code begins a prompt of its own.
_NOTIFICATION: Final = "<task-notification>"
_TEXT_CHARS_MAX: Final = 4_096


class Event(NamedTuple):
    """What happened in a client.

    `name` is the client's word for it and `kind` ours. `source` says how a session began: startup,
    resume, clear, compact or fork. `subagent` is true of what a subagent did, `woken` of a prompt
    that no user wrote but the client, to tell what a hook that wakes has said. `goes_on` is true of
    a stop that follows one which a hook has blocked, and `failed` of one that was no ordinary end.
    """

    client: str
    kind: str
    name: str
    session: str | None = None
    directory: str | None = None
    model: str | None = None
    source: str = ""
    subagent: bool = False
    woken: bool = False
    goes_on: bool = False
    failed: bool = False


class _Fields(msgspec.Struct):
    """The fields that are read, of any type; what else an event holds is passed over."""

    hook_event_name: object = None
    session_id: object = None
    conversation_id: object = None
    cwd: object = None
    workspace_roots: object = None
    model: object = None
    source: object = None
    agent_id: object = None
    prompt: object = None
    stop_hook_active: object = None
    loop_count: object = None
    status: object = None
    turn_id: object = None
    timestamp: object = None
    cursor_version: object = None


_KNOWN: Final = frozenset(_Fields.__struct_fields__)


def read(data: bytes, client: str | None = None) -> Event:
    """Return the event that a client sent; raises ValueError for what is no JSON object.

    `client` is what the command line named; a name that is not known is looked past.
    """
    fields = _fields(data)
    name = _text(fields.hook_event_name) or ""
    found = NAMES.get(client or "") or _client_of(fields, name)
    cursor = found == "cursor"
    session = fields.conversation_id if cursor else fields.session_id
    roots = fields.workspace_roots
    directory = _text(fields.cwd)
    if directory is None and isinstance(roots, list) and roots:
        directory = _text(roots[0])
    loops = fields.loop_count
    return Event(
        client=found,
        kind=_KINDS.get(name, OTHER),
        name=name,
        session=_text(session) or _text(fields.session_id),
        directory=directory,
        model=_text(fields.model),
        source=_text(fields.source) or "",
        subagent=not (fields.agent_id is None or fields.agent_id == ""),
        woken=isinstance(fields.prompt, str) and fields.prompt.startswith(_NOTIFICATION),
        goes_on=fields.stop_hook_active is True or (isinstance(loops, int) and loops > 0),
        failed=cursor and _text(fields.status) not in {None, "completed"},
    )


def _fields(data: bytes) -> _Fields:
    try:
        return msgspec.json.decode(data, type=_Fields)
    except msgspec.ValidationError as error:
        raise ValueError(f"the event is no JSON object: {error}") from error
    except (msgspec.DecodeError, RecursionError):
        return _fields_slowly(data)


def _fields_slowly(data: bytes) -> _Fields:
    """Read what a strict parser refuses: half an emoji, as JavaScript cuts them, or a BOM."""
    import json

    try:
        found = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the event is no JSON: {error}") from error
    if isinstance(found, dict):
        return _Fields(**{key: value for key, value in found.items() if key in _KNOWN})
    raise ValueError(f"the event is no JSON object but a {type(found).__name__}")


def _client_of(fields: _Fields, name: str) -> str:
    """Tell the client by what only it sends; Claude Code's dialect is the common one."""
    if name in _CURSOR or fields.cursor_version is not None or fields.conversation_id is not None:
        return "cursor"
    if name in _GEMINI or (fields.timestamp is not None and fields.turn_id is None):
        return "gemini-cli"
    return "claude-code" if fields.turn_id is None else "codex"


def _text(value: object) -> str | None:
    """Return a text that is one line, not empty and not absurdly long; else None."""
    if not isinstance(value, str) or not value or len(value) > _TEXT_CHARS_MAX:
        return None
    return None if has_control(value) else value


# --- answers -----------------------------------------------------------------------------------


def takes_messages(event: Event) -> bool:
    """Tell whether what an event is answered with is known to reach the model.

    Cursor takes context at a prompt and does not promise it: there only counts are said, for what
    is handed over may not get lost.
    """
    if event.kind == PROMPT:
        return event.client != "cursor"
    return event.kind in {START, TOOL}


def context(event: Event, text: str) -> dict[str, Any]:
    """Return the answer that puts a text before the model."""
    if event.client == "cursor":
        answer: dict[str, Any] = {"additional_context": text}
        return {"continue": True, **answer} if event.kind == PROMPT else answer
    return {"hookSpecificOutput": {"hookEventName": event.name, "additionalContext": text}}


def block(event: Event, reason: str) -> dict[str, Any]:
    """Return the answer that keeps an agent from stopping, and gives it a reason to go on."""
    if event.client == "cursor":
        return {"followup_message": reason}
    return {
        "decision": "deny" if event.client == "gemini-cli" else "block",
        "reason": reason,
    }


def encode(answer: dict[str, Any]) -> bytes:
    """Return an answer as one JSON document on one line."""
    return msgspec.json.encode(answer) + b"\n"
