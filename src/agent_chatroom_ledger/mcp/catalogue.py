"""The twelve tools as a client lists them: names, descriptions, hints and JSON Schemas.

Made without the SDK, so that a client which asks at once is answered before that is loaded. The
schemas come from the parameters and results, without titles and references, because every word
of a tool list is read by a model in every session: it stays under 4,000 tokens.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from agent_chatroom_ledger.mcp import parameters, results


class Tool(NamedTuple):
    """One tool: what a client is told of it, and the types of what it takes and gives."""

    name: str
    title: str
    description: str
    takes: type[parameters.Parameters]
    gives: type
    reads_only: bool = False
    idempotent: bool = False


TOOLS: Final = (
    Tool(
        "rooms_who",
        "Who is here",
        "Your own name and who else is here: directory, model, and whether a message wakes them "
        "or waits. Call it first; not needed before every message.",
        parameters.Who,
        results.WhoResult,
        reads_only=True,
    ),
    Tool(
        "rooms_list",
        "List rooms",
        "Rooms with members, newest message number and how many messages wait for you. To read "
        "one, use rooms_read.",
        parameters.List,
        results.ListResult,
        reads_only=True,
    ),
    Tool(
        "rooms_create",
        "Create or meet in a room",
        "Create a room with you in it. If one with this title exists, you join that one and "
        "created is false. For one question to somebody, use rooms_dm.",
        parameters.Create,
        results.CreateResult,
        idempotent=True,
    ),
    Tool(
        "rooms_join",
        "Join a room",
        "Become a member: later messages reach your inbox. Earlier ones do not; use rooms_read "
        "for those.",
        parameters.Join,
        results.JoinResult,
        idempotent=True,
    ),
    Tool(
        "rooms_leave",
        "Leave a room",
        "Stop receiving a room and drop what waits for you there. The history stays readable.",
        parameters.Leave,
        results.LeaveResult,
        idempotent=True,
    ),
    Tool(
        "rooms_post",
        "Post to a room",
        "Post to a room. Returns the number and how each recipient is reached. Do not post mere "
        "thanks or receipts; to answer a message, use rooms_reply_all.",
        parameters.Post,
        results.SentResult,
    ),
    Tool(
        "rooms_dm",
        "Message somebody directly",
        "Message one or more names directly, running or not. Not secret: everyone with the ledger "
        "can read it. For what concerns a room, use rooms_post.",
        parameters.Dm,
        results.SentResult,
    ),
    Tool(
        "rooms_reply_all",
        "Answer a message",
        "Answer a message's sender and its other addressees, or its room if it was posted in one. "
        "It then counts as answered.",
        parameters.ReplyAll,
        results.SentResult,
    ),
    Tool(
        "rooms_read",
        "Read history",
        "History of a room from its beginning, or the messages with an id or correlation. Marks "
        "nothing seen; for what is new to you, use rooms_inbox.",
        parameters.Read,
        results.ReadResult,
        reads_only=True,
    ),
    Tool(
        "rooms_inbox",
        "Take your messages",
        "Take the next messages for you, oldest first; optionally wait. Old ones carry their age. "
        "Then call rooms_seen. Do not poll: wait.",
        parameters.Inbox,
        results.InboxResult,
    ),
    Tool(
        "rooms_seen",
        "Mark as dealt with",
        "Record that you have dealt with a room up to this message. Nothing else moves your "
        "position. Not for what you only skimmed.",
        parameters.Seen,
        results.SeenResult,
        idempotent=True,
    ),
    Tool(
        "rooms_receipts",
        "What became of a message",
        "For each recipient: handed over, seen, answered, with times. Use it instead of asking "
        "whether somebody got it.",
        parameters.Receipts,
        results.ReceiptsResult,
        reads_only=True,
    ),
)
BY_NAME: Final = {tool.name: tool for tool in TOOLS}


@cache
def listing() -> list[dict[str, Any]]:
    """Return the tools as `tools/list` gives them."""
    return [
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": schema_of(tool.takes),
            "outputSchema": schema_of(tool.gives),
            "annotations": {
                "readOnlyHint": tool.reads_only,
                # No writing tool destroys anything and none reaches beyond the ledger: Codex runs
                # a tool unattended only then.
                "destructiveHint": False,
                "idempotentHint": tool.idempotent or tool.reads_only,
                "openWorldHint": False,
            },
        }
        for tool in TOOLS
    ]


def schema_of(shape: type) -> dict[str, Any]:
    """Return the JSON Schema of an object: no references, no titles, an optional field plain."""
    (_,), components = msgspec.json.schema_components([shape], ref_template="{name}")
    found = _plain(components[shape.__name__], components)
    found.pop("description", None)
    return found


def _plain(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    """Write out references, and leave out what a model need not read."""
    if "$ref" in schema:
        return _plain(components[schema["$ref"]], components)
    choices = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if choices:
        # An optional field is left out rather than null; a reference is a text, as it is shown.
        chosen = next((one for one in choices if one.get("type") == "string"), choices[0])
        return _plain({**chosen, **_described(schema)}, components)
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            found[key] = {name: _field(one, components) for name, one in value.items()}
        elif key == "items":
            found[key] = _field(value, components)
        elif key != "title" and (key != "default" or value):
            found[key] = value
    if not found.get("required", True):
        del found["required"]
    return found


def _field(schema: dict[str, Any], components: dict[str, Any]) -> dict[str, Any]:
    found = _plain(schema, components)
    if "$ref" in schema or found.get("type") == "object":
        found.pop("description", None)
    return found


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": schema["description"]} if "description" in schema else {}
