"""Host and Origin: no page gets a browser to speak here in its place."""

# ruff: noqa: S104 - addresses that a server is bound to are what this is about

from __future__ import annotations

import pytest

from agent_chatroom_ledger.mcp.guard import Guard, bearer_of, is_loopback


@pytest.mark.parametrize(
    ("bound", "allowed", "host"),
    [
        ("127.0.0.1", (), "127.0.0.1:8417"),
        ("127.0.0.1", (), "localhost:8417"),
        ("127.0.0.1", (), "LOCALHOST"),
        ("127.0.0.1", (), "localhost.:80"),
        ("::1", (), "[::1]:8417"),
        ("0.0.0.0", (), "192.168.1.5:8417"),
        ("0.0.0.0", (), "localhost:8417"),
        ("::", (), "[fe80::1]:8417"),
        ("0.0.0.0", ("box.lan",), "box.lan:8417"),
        ("192.168.1.5", (), "192.168.1.5:8417"),
        ("192.168.1.5", ("Box.Lan",), "box.lan"),
    ],
)
def test_a_name_that_leads_here_is_let_in(bound: str, allowed: tuple[str, ...], host: str) -> None:
    guard = Guard(bound, allowed)
    assert guard.refusal([host], []) is None
    assert guard.refusal([host], [f"http://{host}"]) is None


@pytest.mark.parametrize(
    ("bound", "hosts"),
    [
        ("127.0.0.1", []),
        ("127.0.0.1", ["localhost", "localhost"]),
        ("127.0.0.1", ["evil.example"]),
        ("127.0.0.1", ["evil.example:8417"]),
        ("127.0.0.1", ["localhost:evil"]),
        ("127.0.0.1", ["localhost:8417.evil.example"]),
        ("127.0.0.1", ["localhost@evil.example"]),
        ("127.0.0.1", ["localhost evil"]),
        ("127.0.0.1", ["localhost.evil.example"]),
        ("127.0.0.1", ["192.168.1.5:8417"]),
        ("0.0.0.0", ["evil.example:8417"]),
        ("0.0.0.0", ["192.168.1.5.evil.example"]),
        ("192.168.1.5", ["localhost:8417"]),
        ("192.168.1.5", ["192.168.1.6:8417"]),
        ("127.0.0.1", [""]),
    ],
)
def test_a_foreign_name_is_turned_away(bound: str, hosts: list[str]) -> None:
    refusal = Guard(bound).refusal(hosts, [])
    assert refusal is not None
    assert refusal.status == 421


@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
@pytest.mark.parametrize(
    "origins",
    [
        ["http://evil.example"],
        ["http://localhost:3000"],
        ["http://localhost"],
        ["http://127.0.0.1:8417"],
        ["null"],
        [""],
        ["http://localhost:8417", "http://localhost:8417"],
        ["http://localhost:8417.evil.example"],
        ["http://user@localhost:8417"],
        ["file://"],
    ],
)
def test_another_page_is_turned_away(bound: str, origins: list[str]) -> None:
    refusal = Guard(bound).refusal(["localhost:8417"], origins)
    assert refusal is not None
    assert refusal.status == 403


@pytest.mark.parametrize(
    ("host", "verdict"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("", False),
        ("192.168.1.5", False),
        ("box.lan", False),
    ],
)
def test_loopback_is_known(host: str, *, verdict: bool) -> None:
    assert is_loopback(host) is verdict


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ([], None),
        (["Bearer abc"], "abc"),
        (["bearer  abc "], "abc"),
        (["Basic abc"], ""),
        (["abc"], ""),
        (["Bearer abc", "Bearer abc"], ""),
    ],
)
def test_a_bearer_token_is_read(headers: list[str], token: str | None) -> None:
    assert bearer_of(headers) == token
