"""What was used of late stays, within its bound."""

from __future__ import annotations

from agent_chatroom_ledger.storage.recent import Recent


def test_what_is_used_stays_and_the_rest_goes() -> None:
    recent: Recent[int, str] = Recent(100)
    recent.put(0, "kept")
    for number in range(1, 1000):
        recent.put(number, str(number))
        assert recent.get(0) == "kept"
        assert recent.get(number) == str(number)
        assert len(recent) <= 100
    assert recent.get(1) is None


def test_weights_bound_the_whole() -> None:
    recent: Recent[str, bytes] = Recent(1000)
    for number in range(100):
        recent.put(str(number), bytes(100), 100)
        assert len(recent) <= 10
    recent.put("large", bytes(5000), 5000)
    assert recent.get("large") == bytes(5000)
    recent.put("next", b"", 1)
    recent.put("and next", b"", 600)
    assert recent.get("large") is None
    recent.clear()
    assert len(recent) == 0


def test_what_is_not_there() -> None:
    assert Recent[str, str](10).get("x") is None
