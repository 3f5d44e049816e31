"""Settings: defaults, errors that name the key, the limit and the way out, and edits that keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.errors import Forbidden, InvalidInput
from agent_chatroom_ledger.limits import DELIVER_MAX
from agent_chatroom_ledger.storage.configuration import (
    Settings,
    change_setting,
    load_settings,
    settings_set,
)

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.layout import Layout


def test_without_a_file_everything_has_its_default(layout: Layout) -> None:
    assert load_settings(layout) == Settings(
        auto_join=True,
        max_sends_per_session=None,
        dm_delivery="steer",
        room_delivery="steer",
        poll_ms=30,
        max_deliver_per_flush=5,
        stale_after_seconds=900,
    )
    assert settings_set(layout) == frozenset()
    assert not layout.config.exists()


def test_what_the_file_sets_counts(layout: Layout) -> None:
    layout.config.write_text(
        'auto_join = false\nroom_delivery = "followUp"\nmax_sends_per_session = 20\n'
    )
    found = load_settings(layout)
    assert (found.auto_join, found.room_delivery, found.max_sends_per_session) == (
        False,
        "followUp",
        20,
    )
    assert found.max_deliver_per_flush == 5
    assert settings_set(layout) == {"auto_join", "room_delivery", "max_sends_per_session"}


@pytest.mark.parametrize(
    ("line", "key", "told"),
    [
        ("max_deliver_per_flush = 0", "max_deliver_per_flush", str(DELIVER_MAX)),
        ("max_deliver_per_flush = true", "max_deliver_per_flush", "from 1 to"),
        ("max_sends_per_session = -1", "max_sends_per_session", "absent for no limit"),
        ("poll_ms = 1.5", "poll_ms", "from 5 to 10000"),
        ('stale_after_seconds = "900"', "stale_after_seconds", "from 1 to"),
        ('dm_delivery = "now"', "dm_delivery", '"steer" or "followUp"'),
        ("room_delivery = 1", "room_delivery", '"steer" or "followUp"'),
        ('auto_join = "no"', "auto_join", "true or false"),
    ],
)
def test_a_bad_value_names_key_limit_file_and_way_out(
    layout: Layout, line: str, key: str, told: str
) -> None:
    layout.config.write_text(line)
    with pytest.raises(InvalidInput) as caught:
        load_settings(layout)
    text = str(caught.value)
    assert (caught.value.code, caught.value.fields["key"]) == ("bad_setting", key)
    assert told in text
    assert str(layout.config) in text
    assert "default" in text


def test_an_unknown_key_is_a_warning(layout: Layout) -> None:
    layout.config.write_text("colour = 1\npoll_ms = 100\n[later]\nthing = 2\n")
    with pytest.warns(UserWarning, match="'colour', 'later'"):
        assert load_settings(layout).poll_ms == 100


@pytest.mark.parametrize(
    "content", [b"poll_ms = ", b"\xff\xfe", b"a = " + b"[" * 9_000, b"#" * 65_537]
)
def test_a_file_that_is_no_toml_is_named(layout: Layout, content: bytes) -> None:
    layout.config.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"config\.toml.*Mend the file"):
        load_settings(layout)


def test_a_file_that_cannot_be_read_is_named(layout: Layout) -> None:
    layout.config.mkdir()
    with pytest.raises(Forbidden, match=r"config\.toml"):
        load_settings(layout)


def test_a_byte_order_mark_is_no_matter(layout: Layout) -> None:
    layout.config.write_bytes(b"\xef\xbb\xbfpoll_ms = 100\n")
    assert load_settings(layout).poll_ms == 100


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "poll_ms = 80\n"),
        ("# mine\nauto_join = false", "# mine\nauto_join = false\npoll_ms = 80\n"),
        ("poll_ms = 10 # often\n", "poll_ms = 80 # often\n"),
        ('"poll_ms"=10\nauto_join = true\n', "poll_ms = 80\nauto_join = true\n"),
        ("[later]\npoll_ms = 3\n", "poll_ms = 80\n[later]\npoll_ms = 3\n"),
        ("poll_ms = 80\r\n", "poll_ms = 80\n"),
    ],
)
def test_setting_a_key_keeps_everything_else(layout: Layout, before: str, after: str) -> None:
    layout.config.write_bytes(before.encode())
    change_setting(layout, "poll_ms", 80)
    assert layout.config.read_bytes().decode() == after


def test_unsetting_takes_the_line_out(layout: Layout) -> None:
    layout.config.write_text('# mine\npoll_ms = 10 # often\ndm_delivery = "followUp"\n')
    change_setting(layout, "poll_ms", None)
    change_setting(layout, "auto_join", None)
    assert layout.config.read_text() == '# mine\ndm_delivery = "followUp"\n'


def test_what_may_not_be_set_is_refused_and_changes_nothing(layout: Layout) -> None:
    layout.config.write_text('text = """\npoll_ms = 1\n"""\n')
    before = layout.config.read_bytes()
    for key, value in (("poll_ms", 1), ("colour", 1), ("poll_ms", 100)):
        with pytest.raises(InvalidInput):
            change_setting(layout, key, value)
    assert layout.config.read_bytes() == before
