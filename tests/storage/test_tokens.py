"""The file of bearer tokens: hashed, private, durable, and never mistaken for an empty one."""

from __future__ import annotations

import hashlib
import stat
from typing import TYPE_CHECKING

import msgspec
import pytest

from agent_chatroom_ledger import tokens
from agent_chatroom_ledger.errors import Conflict, Corrupt, Forbidden, InvalidInput, NotFound
from agent_chatroom_ledger.limits import TOKENS_MAX
from agent_chatroom_ledger.storage.tokens import (
    StoredToken,
    changed_tokens,
    load_tokens,
    tokens_path,
)

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger


def test_a_token_binds_one_name_until_it_is_revoked(ledger: Ledger) -> None:
    ana = tokens.create_token(ledger, "ana")
    ben = tokens.create_token(ledger, "ben")
    assert tokens.bound_name(ledger, ana.secret) == "ana"
    assert tokens.bound_name(ledger, ben.secret) == "ben"
    assert tokens.list_tokens(ledger) == [ana.token, ben.token]
    assert tokens.revoke_token(ledger, ana.token.id) == [ana.token]
    assert tokens.bound_name(ledger, ana.secret) is None
    assert tokens.bound_name(ledger, ben.secret) == "ben"


def test_all_tokens_of_a_name_go_together(ledger: Ledger) -> None:
    made = [tokens.create_token(ledger, "ana") for _ in range(2)]
    other = tokens.create_token(ledger, "ben")
    assert len({token.secret for token in made}) == 2
    assert tokens.revoke_token(ledger, "ana") == [token.token for token in made]
    assert tokens.list_tokens(ledger) == [other.token]
    with pytest.raises(NotFound, match="no token"):
        tokens.revoke_token(ledger, "ana")


@pytest.mark.parametrize("given", ["", "rooms_", "rooms_x", "\udc80", "ana"])
def test_what_is_no_token_speaks_for_nobody(ledger: Ledger, given: str) -> None:
    tokens.create_token(ledger, "ana")
    assert tokens.bound_name(ledger, given) is None


def test_only_the_hash_is_stored_for_the_owner_alone_outside_version_control(
    ledger: Ledger,
) -> None:
    made = tokens.create_token(ledger, "ana")
    path = tokens_path(ledger.layout)
    content = path.read_bytes()
    assert made.secret.encode() not in content
    assert hashlib.sha256(made.secret.encode()).hexdigest().encode() in content
    assert path.is_relative_to(ledger.root / ".git")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["", " ", "*", "a\nb", "n" * 49])
def test_a_name_that_no_agent_may_have_is_refused(ledger: Ledger, name: str) -> None:
    with pytest.raises(InvalidInput):
        tokens.create_token(ledger, name)
    assert not tokens_path(ledger.layout).exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"schema":"other","format":1,"tokens":[]}', b"\xff", b'{"format":1}'],
)
def test_a_damaged_file_is_an_error_that_names_it(ledger: Ledger, content: bytes) -> None:
    path = tokens_path(ledger.layout)
    path.write_bytes(content)
    with pytest.raises(Corrupt, match=r"tokens\.json") as error:
        tokens.bound_name(ledger, "rooms_x")
    assert error.value.code == "tokens_damaged"
    with pytest.raises(Corrupt):
        tokens.create_token(ledger, "ana")
    assert path.read_bytes() == content


def test_a_newer_format_is_left_to_the_newer_version(ledger: Ledger) -> None:
    path = tokens_path(ledger.layout)
    path.write_text('{"schema":"agent-chatroom-ledger/tokens","format":2,"tokens":[]}')
    with pytest.raises(InvalidInput, match="format 2"):
        load_tokens(ledger.layout)


def test_a_file_that_cannot_be_read_is_named(ledger: Ledger) -> None:
    tokens_path(ledger.layout).mkdir()
    with pytest.raises(Forbidden, match=r"tokens\.json"):
        load_tokens(ledger.layout)


def test_there_is_a_limit(ledger: Ledger) -> None:
    one = StoredToken(id="x", name="ana", sha256="0", at="2026-11-29T21:27:42.123456Z")
    with changed_tokens(ledger.layout) as stored:
        stored += [msgspec.structs.replace(one, id=str(k)) for k in range(TOKENS_MAX)]
    with pytest.raises(Conflict, match="1000 tokens"):
        tokens.create_token(ledger, "ana")


def test_a_change_that_fails_changes_nothing(ledger: Ledger) -> None:
    tokens.create_token(ledger, "ana")
    before = tokens_path(ledger.layout).read_bytes()

    def fail() -> None:
        with changed_tokens(ledger.layout) as stored:
            stored.clear()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert tokens_path(ledger.layout).read_bytes() == before
    assert not list(ledger.layout.tmp.iterdir())
