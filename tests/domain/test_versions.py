"""Bundles of ten levels: what may be set, how it is stored, and what a fold skips."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain import versions
from agent_chatroom_ledger.domain.records import encode_record, message_of, record_of
from agent_chatroom_ledger.domain.versions import Bundle
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.limits import BODY_BYTES_MAX, DATA_BYTES_MAX

if TYPE_CHECKING:
    from agent_chatroom_ledger.domain.drafts import Draft
    from agent_chatroom_ledger.domain.records import Message

AT = "2026-11-29T21:27:42.123456Z"
BODY = "eighteen checks have passed, and none has failed"
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40)
LEVELS = st.lists(TEXTS, min_size=10, max_size=10).map(tuple)


def shape(levels: tuple[str, ...]) -> dict[str, Any]:
    return versions.levels_shape(levels)


def shorter(body: str = BODY) -> tuple[str, ...]:
    return tuple(body[: len(body) - 4 * level] for level in range(10))


def bundle(levels: tuple[str, ...], **fields: Any) -> Bundle:
    return Bundle(origin="mbp-3f2a", n=57, levels=levels, **fields)


def operation(draft: Draft) -> Message:
    record = record_of(draft, 4, AT, "op-4")
    return message_of(encode_record(record), "ci-9a1c", "operations", primary=False)


def test_ten_levels_with_right_counts_are_accepted() -> None:
    assert versions.check_levels(shape(shorter()), BODY) == shorter()
    numbered = {int(level): value for level, value in shape(shorter()).items()}
    assert versions.check_levels(numbered, BODY) == shorter()


def without(level: str) -> dict[str, Any]:
    return {key: value for key, value in shape(shorter()).items() if key != level}


@pytest.mark.parametrize(
    "given_versions",
    [
        without("9"),
        without("0"),
        {},
        [],
        None,
        {**shape(shorter()), "10": {"message": "", "char_count": 0}},
        {**shape(shorter()), 3: {"message": "", "char_count": 0}},
        {**shape(shorter()), "3": "text"},
        {**shape(shorter()), "3": {"message": "text"}},
        {**shape(shorter()), "3": {"message": "text", "char_count": 5}},
        {**shape(shorter()), "3": {"message": "text", "char_count": "4"}},
        {**shape(shorter()), "3": {"message": "x", "char_count": True}},
        {**shape(shorter()), "3": {"message": 5, "char_count": 1}},
        {**shape(shorter()), "0": {"message": BODY + " ", "char_count": len(BODY) + 1}},
    ],
)
def test_anything_else_is_refused(given_versions: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        versions.check_levels(given_versions, BODY)
    assert refused.value.code == "version_invalid"
    assert isinstance(refused.value, ValueError)


def test_a_level_obeys_the_limits_of_a_body() -> None:
    long = "x" * (BODY_BYTES_MAX + 1)
    with pytest.raises(InvalidInput) as refused:
        versions.check_levels(shape((*shorter()[:9], long)), BODY)
    assert refused.value.fields["limit"] == BODY_BYTES_MAX


def test_counts_are_characters_and_not_bytes() -> None:
    body = "größer 👍"
    assert shape((body,) * 10)["0"]["char_count"] == 8
    assert versions.check_levels(shape((body,) * 10), body) == (body,) * 10


@given(LEVELS)
def test_a_small_bundle_stands_in_its_operation(levels: tuple[str, ...]) -> None:
    draft, artifact = versions.set_draft(bundle(levels, semantic=True), by="Editor")
    assert artifact is None
    change = versions.change_of(operation(draft))
    assert change is not None
    found = versions.bundle_of(change, None)
    assert found.levels == levels
    assert (found.origin, found.n, found.semantic) == ("mbp-3f2a", 57, True)
    assert (found.prepared_by, found.prepared_at) == ("Editor", AT)
    assert found.source_hash == versions.source_hash(levels[0])


@given(LEVELS)
def test_a_projection_comes_back_as_it_was(levels: tuple[str, ...]) -> None:
    draft, _ = versions.set_draft(bundle(levels), by="Editor")
    change = versions.change_of(operation(draft))
    assert change is not None
    found = versions.bundle_of(change, None)
    data = versions.bundle_json(found)
    assert versions.bundle_from_json(data) == found
    assert msgspec.json.decode(data)["levels"]["9"]["char_count"] == len(levels[9])


def test_a_large_bundle_is_an_artifact_under_its_hash() -> None:
    levels = tuple("x" * (DATA_BYTES_MAX // 8 - level) for level in range(10))
    draft, artifact = versions.set_draft(bundle(levels), by="Editor")
    assert artifact is not None
    assert draft.artifacts == ((draft.data or {})["bundle_hash"],)
    assert "levels" not in (draft.data or {})
    change = versions.change_of(operation(draft))
    assert change is not None
    assert versions.bundle_of(change, artifact).levels == levels
    for damaged in (None, b"", artifact[:-2], artifact.replace(b"x", b"y", 1)):
        with pytest.raises(InvalidInput):
            versions.bundle_of(change, damaged)


def test_all_levels_together_have_a_limit() -> None:
    levels = tuple("\x01" * 100_000 for _ in range(10))
    with pytest.raises(InvalidInput) as refused:
        versions.set_draft(bundle(levels), by="Editor")
    assert refused.value.fields["limit"] == versions.VERSION_BUNDLE_BYTES_MAX


def test_a_restored_bundle_keeps_who_prepared_it() -> None:
    before = bundle(shorter(), prepared_by="Editor", prepared_at="2026-01-01T00:00:00.000000Z")
    draft, _ = versions.set_draft(before, by="Restorer", reason="it was better")
    change = versions.change_of(operation(draft))
    assert change is not None
    assert (change.prepared_by, change.prepared_at) == ("Editor", before.prepared_at)
    assert draft.author == "Restorer"


def test_a_clear_operation_takes_a_bundle_back() -> None:
    change = versions.change_of(operation(versions.clear_draft("mbp-3f2a", 57, by="Editor")))
    assert change is not None
    assert (change.clear, change.origin, change.n) == (True, "mbp-3f2a", 57)


@pytest.mark.parametrize(
    "damage",
    [
        {"messages": []},
        {"messages": ["1@a-1", "2@a-1"]},
        {"messages": ["../../x"]},
        {"levels": "text"},
        {"levels": ["text", 5]},
        {"levels": None},
        {"prepared_by": "two\nlines", "prepared_at": AT},
        {"prepared_at": "yesterday"},
        {"bundle_hash": None},
    ],
)
def test_an_operation_that_breaks_a_rule_is_named(damage: dict[str, Any]) -> None:
    draft, _ = versions.set_draft(bundle(shorter()), by="Editor")
    wrong = msgspec.structs.replace(draft, data={**(draft.data or {}), **damage})
    with pytest.raises(InvalidInput):
        versions.change_of(operation(wrong))


@pytest.mark.parametrize("field", ["source_hash", "bundle_hash"])
def test_levels_that_do_not_fit_their_hashes_are_refused(field: str) -> None:
    draft, _ = versions.set_draft(bundle(shorter()), by="Editor")
    wrong = msgspec.structs.replace(draft, data={**(draft.data or {}), field: "0" * 64})
    change = versions.change_of(operation(wrong))
    assert change is not None
    with pytest.raises(InvalidInput):
        versions.bundle_of(change, None)


def test_other_operations_change_no_versions() -> None:
    draft, _ = versions.set_draft(bundle(shorter()), by="Editor")
    other = msgspec.structs.replace(draft, kind="versions.unheard-of")
    assert versions.change_of(operation(other)) is None


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"format":1}', b"\xff"])
def test_bytes_that_are_no_projection_are_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        versions.bundle_from_json(data)


def test_a_projection_that_was_edited_or_is_newer_is_corrupt() -> None:
    draft, _ = versions.set_draft(bundle(shorter()), by="Editor")
    change = versions.change_of(operation(draft))
    assert change is not None
    data = versions.bundle_json(versions.bundle_of(change, None))
    with pytest.raises(Corrupt):
        versions.bundle_from_json(data.replace(b"eighteen", b"nineteen"))
    with pytest.raises(Corrupt) as newer:
        versions.bundle_from_json(data.replace(b'"format": 1', b'"format": 2'))
    assert newer.value.code == "newer_format"


def test_what_a_message_lacks() -> None:
    message = message_of(
        b'{"n":57,"id":"a","at":"%s","author":"A","kind":"message","body":"%s"}'
        % (AT.encode(), BODY.encode()),
        "mbp-3f2a",
        "messages",
        primary=True,
    )
    nobody = versions.unprepared(message)
    assert nobody.levels == (BODY,) * 10
    assert not nobody.prepared
    assert versions.needs_work(nobody, BODY, semantic=False) == ()
    assert versions.needs_work(nobody, BODY, semantic=True) == ("not_semantic",)
    assert versions.needs_work(nobody, "other", semantic=False) == ("stale_source",)
