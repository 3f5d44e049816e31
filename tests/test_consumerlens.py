"""Consumer lenses: fitted by the sequential rule, exact, sticky, and without a trace elsewhere."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_chatroom_ledger import Corrupt, InvalidInput, Ledger, Message, versions
from agent_chatroom_ledger.consumerlens import ConsumerLens, consumer_state, lens_for
from agent_chatroom_ledger.domain.renderings import FORMS, Shown
from agent_chatroom_ledger.domain.versions import levels_shape

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agent_chatroom_ledger import Room

BODY = "eighteen checks have passed, and none of them has failed so far"


def prepare(room: Room, n: int, texts: tuple[str, ...] | None = None) -> None:
    body = room.message(n).body
    shorter = texts or tuple(body[: len(body) - 6 * level] for level in range(1, 10))
    versions.set_versions(room, n, levels_shape((body, *shorter)), by="Editor")


@pytest.fixture
def room(ledger: Ledger) -> Room:
    made = ledger.create_room("Design review")
    made.post_many([{"author": "Analyst", "body": f"{n}: {BODY}"} for n in range(1, 7)])
    for n in (1, 2, 4):
        prepare(made, n)
    return made


def levels(found: ConsumerLens) -> list[int]:
    return [shown.level for shown in found.items]


def naive(
    room: Room, budget: int, form: str, start: list[int], measure: Callable[[str], int] = len
) -> tuple[list[int], int]:
    """Render the room once per step, as the rule says."""
    chosen = list(start)
    items = room.lens().items
    bundles = [
        versions.bundle_of(room, item) if isinstance(item, Message) else None for item in items
    ]

    def size() -> int:
        parts = [
            FORMS[form].item(Shown(item, level, bundle.levels[level] if bundle else item.body))
            for item, level, bundle in zip(items, chosen, bundles, strict=True)
        ]
        return measure(FORMS[form].joined(parts))

    while size() > budget:
        oldest = next(
            (i for i, level in enumerate(chosen) if level < 9 and bundles[i] is not None), None
        )
        if oldest is None:
            break
        chosen[oldest] += 1
    return chosen, size()


def test_what_fits_is_shown_whole_and_leaves_no_trace(room: Room) -> None:
    found = lens_for(room, "Reviewer")
    assert found.status == "valid"
    assert set(levels(found)) == {0}
    assert found.compiled() == {
        "status": "valid",
        "threshold_chars": 180_000,
        "compiled_chars": len(found.rendering),
        "remaining_margin_chars": 180_000 - len(found.rendering),
        "highest_version_used": 0,
    }
    assert not list(room.ledger.layout.consumers.iterdir())


@pytest.mark.parametrize("form", FORMS)
def test_every_budget_gives_what_the_rule_taken_literally_gives(room: Room, form: str) -> None:
    room.exclude(3)
    room.add_standin(5, "in short")
    whole = lens_for(room, "Reviewer", form=form).used
    for budget in range(whole + 5, max(whole - 220, 0), -29):
        found = lens_for(room, "Reviewer", budget=budget, form=form, at="main")
        expected, used = naive(room, budget, form, [0] * len(found.items))
        assert (levels(found), found.used) == (expected, used)
        assert len(found.rendering) == found.used
        assert found.status == ("valid" if used <= budget else "exhausted")


@settings(max_examples=10, deadline=None)
@given(budget=st.integers(300, 1_200), texts=st.lists(st.text('aé\n"> ', max_size=80), min_size=9,
                                                      max_size=9))  # fmt: skip
def test_levels_that_grow_and_hold_anything_fit_exactly_too(
    tmp_path_factory: pytest.TempPathFactory, budget: int, texts: list[str]
) -> None:
    root = tmp_path_factory.mktemp("ledgers")
    with Ledger.open(root / "ledger", create=True) as ledger:
        room = ledger.create_room("Room")
        room.post_many([{"author": "A", "body": BODY} for _ in range(4)])
        prepare(room, 2, tuple(texts))
        found = lens_for(room, "Reviewer", budget=budget)
        expected, used = naive(room, budget, "json", [0] * 4)
        assert (levels(found), found.used, len(found.rendering)) == (expected, used, used)
    shutil.rmtree(root)


def test_the_choice_is_sticky_and_each_consumer_has_its_own(room: Room) -> None:
    whole = lens_for(room, "Reviewer").used
    tight = lens_for(room, "Reviewer", budget=whole - 60)
    assert tight.highest_level > 0
    again = lens_for(room, "Reviewer")
    assert levels(again) == levels(tight)
    assert levels(lens_for(room, "Other")) == [0] * 6
    room.post("Analyst", "one more")
    assert levels(lens_for(room, "Reviewer")) == [*levels(tight), 0]
    state = consumer_state(room, "Reviewer")
    assert state["compiled"]["threshold_chars"] == whole - 60
    assert state["levels"][room.origin][0][0] == 1
    assert levels(lens_for(room, "Reviewer", reset=True)) == [0] * 7
    assert consumer_state(room, "Reviewer")["levels"] == {}


def test_a_sticky_choice_goes_on_from_where_it_stands(room: Room) -> None:
    whole = lens_for(room, "Reviewer").used
    first = lens_for(room, "Reviewer", budget=whole - 60)
    second = lens_for(room, "Reviewer", budget=whole - 120)
    expected, used = naive(room, whole - 120, "json", levels(first))
    assert (levels(second), second.used) == (expected, used)


def test_what_is_chosen_outlives_the_process_and_an_exclusion(room: Room) -> None:
    whole = lens_for(room, "Reviewer").used
    tight = lens_for(room, "Reviewer", budget=whole - 60)
    room.exclude(1)
    lens_for(room, "Reviewer", budget=tight.used - 150)
    room.include(1)
    room.ledger.close()
    with Ledger.open(room.ledger.root, read_only=True) as ledger:
        again = lens_for(ledger.room("design-review"), "Reviewer")
    assert levels(again)[0] == levels(tight)[0]
    assert all(new >= old for new, old in zip(levels(again), levels(tight), strict=True))


def test_when_nothing_fits_it_is_reported_and_nothing_is_kept(room: Room) -> None:
    before = room.members
    found = lens_for(room, "Reviewer", budget=10)
    assert found.status == "exhausted"
    assert levels(found) == [9] * 6
    assert found.margin == 10 - found.used < 0
    assert room.members == before
    assert levels(lens_for(room, "Reviewer")) == [0] * 6


def test_a_caller_may_measure_in_tokens(room: Room) -> None:
    def words(text: str) -> int:
        return len(text.split())

    whole = lens_for(room, "Reviewer", measure=words).used
    found = lens_for(room, "Reviewer", budget=whole - 4, measure=words)
    assert found.status == "valid"
    assert found.used <= whole - 4
    assert found.highest_level > 0
    between = FORMS["json"].between
    parts = [FORMS["json"].item(shown) for shown in found.items]
    around = words("[]")
    assert found.used == around + sum(words(p + between) for p in parts[:-1]) + words(parts[-1])


def test_standins_are_shown_whole(room: Room) -> None:
    room.add_standin("1-6", "all in short")
    found = lens_for(room, "Reviewer", budget=0)
    assert levels(found) == [0]
    assert found.status == "exhausted"


def test_a_bundle_of_another_text_is_not_shown(room: Room) -> None:
    from agent_chatroom_ledger.changes import Change, apply_change
    from agent_chatroom_ledger.domain.versions import Bundle, set_draft

    forged = Bundle(origin=room.origin, n=3, levels=("another text", *("x",) * 9))
    draft, _ = set_draft(forged, by="Mallory")
    apply_change(room, Change(kind=draft.kind, make=lambda *_: draft, by="Mallory"))
    found = lens_for(room, "Reviewer", budget=0)
    assert found.items[2].text == room.message(3).body


def test_a_lens_at_a_commit_begins_anew_and_keeps_nothing(room: Room) -> None:
    whole = lens_for(room, "Reviewer").used
    lens_for(room, "Reviewer", budget=whole - 60)
    room.ledger.flush()
    past = lens_for(room, "Reviewer", at="main")
    assert levels(past) == [0] * 6
    assert levels(lens_for(room, "Reviewer"))[0] > 0


def test_an_empty_room_fits(ledger: Ledger) -> None:
    found = lens_for(ledger.create_room("Empty"), "Reviewer", budget=2)
    assert (found.status, found.used, found.rendering, found.items) == ("valid", 2, "[]", ())


def test_what_is_wrong_is_named(room: Room) -> None:
    with pytest.raises(InvalidInput):
        lens_for(room, "Reviewer", budget=-1)
    with pytest.raises(InvalidInput):
        lens_for(room, "Reviewer", form="yaml")
    with pytest.raises(InvalidInput):
        lens_for(room, "two\nlines")


def damaged(path: Path, entry: Any) -> None:
    document = json.loads(path.read_text())
    (room_id,) = document["rooms"]
    document["rooms"][room_id] = {**document["rooms"][room_id], **entry}
    path.write_text(json.dumps(document))


@pytest.mark.broken_on_purpose
@pytest.mark.parametrize(
    "entry", [{"levels": [[1, 2, 3]]}, {"levels": {"a-1": [[1, 2, 10]]}}, {"levels": {"a-1": 3}}]
)
def test_a_damaged_state_is_named_and_verify_names_it_too(room: Room, entry: Any) -> None:
    whole = lens_for(room, "Reviewer").used
    lens_for(room, "Reviewer", budget=whole - 60)
    room.ledger.flush()
    (path,) = room.ledger.layout.consumers.iterdir()
    damaged(path, entry)
    with pytest.raises(Corrupt) as found:
        lens_for(room, "Reviewer")
    assert found.value.code == "consumer_state_invalid"
    report = room.ledger.verify()
    assert [issue.code for issue in report.issues] == ["consumer_state_invalid"]


@pytest.mark.broken_on_purpose
def test_verify_names_levels_of_messages_that_are_not_there(room: Room) -> None:
    whole = lens_for(room, "Reviewer").used
    lens_for(room, "Reviewer", budget=whole - 60)
    room.ledger.flush()
    assert room.ledger.verify().issues == ()
    (path,) = room.ledger.layout.consumers.iterdir()
    damaged(path, {"levels": {room.origin: [[1, 99, 3]]}})
    (issue,) = room.ledger.verify().issues
    assert (issue.severity, issue.code) == ("error", "consumer_state_invalid")
