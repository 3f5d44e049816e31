"""`rooms tokens`: bearer tokens, shown once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.tokens import bound_name

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ask, Invoke


def test_a_token_is_shown_once_listed_without_it_and_revoked(
    root: Path, invoke: Invoke, ask: Ask
) -> None:
    assert invoke("tokens", "list").stdout == "No tokens.\n"
    made = invoke("tokens", "create", "ana")
    secret = made.stdout.strip()
    assert "It speaks as ana" in made.stderr
    with Ledger.open(root) as ledger:
        assert bound_name(ledger, secret) == "ana"
    (listed,) = ask("tokens", "list")["tokens"]
    assert set(listed) == {"id", "name", "at"}
    assert secret not in invoke("tokens", "list").stdout
    assert ask("tokens", "revoke", listed["id"]) == {"revoked": [listed]}
    assert ask("tokens", "list") == {"tokens": []}


def test_the_document_holds_the_token(ask: Ask) -> None:
    made = ask("tokens", "create", "ana")
    assert made["name"] == "ana"
    assert made["token"].startswith("rooms_")


def test_what_is_not_there_cannot_be_revoked(invoke: Invoke) -> None:
    result = invoke("tokens", "revoke", "nobody")
    assert result.exit_code == 3
    assert "rooms tokens list" in result.stderr


def test_a_hostile_name_is_no_name(invoke: Invoke) -> None:
    assert invoke("tokens", "create", "a\x1b[2Jb").exit_code == 1


@pytest.mark.parametrize("option", ["--host=127.0.0.1", "--port=1", "--allow-host=x"])
def test_what_is_about_http_is_refused_over_streams(invoke: Invoke, option: str) -> None:
    result = invoke("mcp", option)
    assert result.exit_code == 2
    assert f"{option.partition('=')[0]} is about serving over HTTP; give --http" in result.stderr
