"""The tool list, as a client's model reads it in every session."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from agent_chatroom_ledger.mcp import catalogue, results
from agent_chatroom_ledger.mcp.answers import object_of

# The tools with their parameters, those in brackets optional.
TABLE = """
rooms_who([all])
rooms_list([mine, archived, after, limit])
rooms_create(title, [members, folder, new])
rooms_join(room)
rooms_leave(room, [keep_queued])
rooms_post(room, body, [to, reply_to, kind, correlation, key])
rooms_dm(to, body, [correlation, key])
rooms_reply_all(id, body, [key])
rooms_read([room, since, last, limit, id, correlation, at])
rooms_inbox([max, wait_seconds, room, peek])
rooms_seen(room, through)
rooms_receipts(id)
"""
READ_ONLY = {"rooms_who", "rooms_list", "rooms_read", "rooms_receipts"}
IDEMPOTENT = {"rooms_create", "rooms_join", "rooms_leave", "rooms_seen"} | READ_ONLY
TOKENS_MAX = 4_000
# Characters a token: the list, as compact JSON, measured 4.2 with Claude's published tokenizer and
# with o200k, 4.4 with cl100k. What is allowed here leaves a fifth for a tokenizer that splits more.
CHARS_PER_TOKEN = 3.4


def listed() -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool for tool in catalogue.listing()}


def test_there_are_the_twelve_tools_with_exactly_their_parameters() -> None:
    lines = []
    for name, tool in listed().items():
        schema = tool["inputSchema"]
        required = schema.get("required", [])
        optional = [field for field in schema["properties"] if field not in required]
        words = [*required, *([f"[{', '.join(optional)}]"] if optional else [])]
        lines.append(f"{name}({', '.join(words)})")
    assert lines == TABLE.split("\n")[1:-1]


@pytest.mark.parametrize("name", listed())
def test_every_tool_has_all_four_hints(name: str) -> None:
    assert listed()[name]["annotations"] == {
        "readOnlyHint": name in READ_ONLY,
        "destructiveHint": False,
        "idempotentHint": name in IDEMPOTENT,
        "openWorldHint": False,
    }


@pytest.mark.parametrize("name", listed())
def test_every_description_is_one_line_of_whole_sentences(name: str) -> None:
    description = listed()[name]["description"]
    assert "\n" not in description
    assert description.endswith(".")
    assert len(description) <= 200


def test_the_list_is_short_enough_for_every_session() -> None:
    document = json.dumps({"tools": catalogue.listing()}, separators=(",", ":"))
    assert len(document) / CHARS_PER_TOKEN < TOKENS_MAX


@pytest.mark.parametrize("name", listed())
@pytest.mark.parametrize("which", ["inputSchema", "outputSchema"])
def test_every_schema_is_plain(name: str, which: str) -> None:
    schema = listed()[name][which]
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert keywords(schema) <= {
        *("type", "properties", "required", "additionalProperties", "items", "description"),
        *("minimum", "maximum", "minItems", "maxItems", "default"),
    }


def keywords(schema: dict[str, Any]) -> set[str]:
    """Return every keyword of a schema and of those in it; names of properties are none."""
    found = set(schema)
    for inner in schema.get("properties", {}).values():
        found |= keywords(inner)
    return found | (keywords(schema["items"]) if "items" in schema else set())


def test_bounds_are_in_the_schemas() -> None:
    tools = listed()
    assert tools["rooms_inbox"]["inputSchema"]["properties"]["wait_seconds"]["maximum"] == 100
    assert tools["rooms_list"]["inputSchema"]["properties"]["limit"]["maximum"] == 200
    to = tools["rooms_dm"]["inputSchema"]["properties"]["to"]
    assert (to["minItems"], to["maxItems"]) == (1, 32)


def test_a_result_without_its_optional_fields_fits_its_schema() -> None:
    said = results.Handed(
        room="r", ref="1", id="i", at="2026-11-29T00:00:00Z", author="a", kind="message", body=""
    )
    inbox = object_of(results.InboxResult(messages=[said], waiting=0))
    assert set(inbox["messages"][0]) == {"room", "ref", "id", "at", "author", "kind", "body"}
    Draft202012Validator(listed()["rooms_inbox"]["outputSchema"]).validate(inbox)
    assert msgspec.convert(inbox, results.InboxResult).messages[0].body == ""
