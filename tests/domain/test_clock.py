"""Times: one stored form, whose order as text is its order in time; ids that sort like them."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.clock import (
    from_datetime,
    from_micros,
    new_id,
    parse_when,
    to_datetime,
    to_micros,
)
from agent_chatroom_ledger.errors import InvalidInput

STORED = "2026-11-29T21:27:42.123456Z"
NOW = datetime(2026, 11, 29, 21, 27, 42, 123456, tzinfo=UTC)
LAST_MICROS = 253_402_300_799_999_999

micros = st.integers(0, LAST_MICROS)


def test_the_stored_form() -> None:
    assert from_datetime(NOW) == STORED
    assert to_datetime(STORED) == NOW
    assert to_micros(STORED) == 1_795_987_662_123_456
    assert from_micros(1_795_987_662_123_456) == STORED


@given(micros)
def test_micros_come_back(value: int) -> None:
    assert to_micros(from_micros(value)) == value


@given(micros, micros)
def test_the_order_of_the_text_is_the_order_in_time(one: int, other: int) -> None:
    assert (from_micros(one) < from_micros(other)) == (one < other)


offsets = st.timedeltas(timedelta(hours=-23), timedelta(hours=23)).map(timezone)


@given(micros, offsets)
def test_any_zone_becomes_utc(value: int, zone: timezone) -> None:
    try:
        when = to_datetime(from_micros(value)).astimezone(zone)
    except OverflowError:
        return
    assert from_datetime(when) == from_micros(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-11-29",
        "2026-11-29T21:27:42Z",
        "2026-11-29T21:27:42.123456",
        "2026-11-29T21:27:42.123456+00:00",
        "2026-11-29 21:27:42.123456Z",
        "2026-11-29T21:27:42.123456Z\n",
        "2026-02-30T21:27:42.123456Z",
        "2026-11-29T25:27:42.123456Z",
        "\u0662026-11-29T21:27:42.123456Z",
        "x" * 10_000,
        "\ud800",
    ],
)
def test_any_other_form_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        to_datetime(text)
    assert len(caught.value.message) < 300


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidInput, match="zone"):
        from_datetime(datetime(2026, 11, 29))  # noqa: DTZ001 - what is refused


@pytest.mark.parametrize("value", [10**30, LAST_MICROS + 1, -(10**20)])
def test_a_time_out_of_range_is_refused(value: int) -> None:
    with pytest.raises(InvalidInput, match="range"):
        from_micros(value)


def test_a_time_that_its_zone_moves_out_of_range_is_refused() -> None:
    east = timezone(timedelta(hours=14))
    with pytest.raises(InvalidInput, match="range"):
        from_datetime(datetime(1, 1, 1, tzinfo=east))


@given(micros, st.binary(min_size=10, max_size=10))
def test_ids_are_version_7_of_their_time(value: int, entropy: bytes) -> None:
    found = uuid.UUID(new_id(value, entropy))
    assert str(found) == new_id(value, entropy)
    assert found.version == 7
    assert found.variant == uuid.RFC_4122
    assert found.int >> 80 == value // 1000


@given(micros, micros, st.binary(min_size=10, max_size=10), st.binary(min_size=10, max_size=10))
def test_ids_sort_as_their_times_do(one: int, other: int, first: bytes, second: bytes) -> None:
    if one != other:
        assert (new_id(one, first) < new_id(other, second)) == (one < other)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2h", NOW - timedelta(hours=2)),
        ("3d", NOW - timedelta(days=3)),
        ("90 s ago", NOW - timedelta(seconds=90)),
        ("15m", NOW - timedelta(minutes=15)),
        ("1w ago", NOW - timedelta(weeks=1)),
        ("now", NOW),
        (" Yesterday ", datetime(2026, 11, 28, tzinfo=UTC)),
        ("today", datetime(2026, 11, 29, tzinfo=UTC)),
        ("2026-11-01", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-01T10:00+02:00", datetime(2026, 11, 1, 8, tzinfo=UTC)),
        (STORED, NOW),
    ],
)
def test_what_a_person_means(text: str, expected: datetime) -> None:
    assert parse_when(text, NOW) == expected


def test_a_persons_day_begins_in_their_zone() -> None:
    here = NOW.astimezone(timezone(timedelta(hours=9)))
    assert parse_when("today", here) == datetime(2026, 11, 29, 15, tzinfo=UTC)
    assert parse_when("2026-11-30", here) == datetime(2026, 11, 29, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "soon", "2x", "-2h", "999999w", "9999999d", "\u0662h", "\ud800", "x" * 10_000]
)
def test_what_nobody_means_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="not a time"):
        parse_when(text, NOW)
