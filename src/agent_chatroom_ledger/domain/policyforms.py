"""Policies and stand-ins in the form in which operations hold them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from agent_chatroom_ledger.domain.clock import to_datetime
from agent_chatroom_ledger.domain.drafts import check_body, check_kind, check_text
from agent_chatroom_ledger.domain.names import check_author
from agent_chatroom_ledger.domain.policy import Policy, StandIn
from agent_chatroom_ledger.domain.projections import refs_of
from agent_chatroom_ledger.domain.references import (
    full_ref,
    parse_range,
    parse_ranges,
    parse_ref,
    range_ref,
)
from agent_chatroom_ledger.errors import Conflict, InvalidInput
from agent_chatroom_ledger.limits import ID_CHARS_MAX, STANDINS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# What one operation takes of a policy; the rest goes into further ones. The data of an operation
# may have a third more, for the reason and the report.
_PART_BYTES: Final = 48_000
_ENCODER: Final = msgspec.json.Encoder()


def text_of(data: Mapping[str, Any], field: str) -> str:
    """Return a field that has to be a text."""
    value = data.get(field)
    if not isinstance(value, str):
        raise InvalidInput(f"an operation's {field} must be a text", field=field)
    return value


def texts_of(data: Mapping[str, Any], field: str) -> list[str]:
    """Return a field that has to be a list of texts."""
    value = data.get(field)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"an operation's {field} must be a list of texts", field=field)
    return value


def standin_of(form: object, primary: str, at: str) -> StandIn:
    """Return the stand-in of its form; ``at`` is when it was added."""
    if not isinstance(form, dict):
        raise InvalidInput("an operation's standin must be an object", field="standin")
    ranges = parse_ranges(texts_of(form, "replaces"), primary)
    replaces = sorted({(o, n) for o, first, last in ranges for n in range(first, last + 1)})
    if not replaces:
        raise InvalidInput("a stand-in replaces at least one message", field="replaces")
    return StandIn(
        id=check_text(text_of(form, "id"), "id", ID_CHARS_MAX),
        replaces=tuple(replaces),
        insert_after=parse_ref(text_of(form, "insert_after"), primary),
        speaker=check_author(text_of(form, "speaker"), "speaker"),
        kind=check_kind(text_of(form, "kind")),
        body=check_body(text_of(form, "body")),
        at=at,
    )


def restored(before: Policy, data: Mapping[str, Any], primary: str) -> Policy:
    """Return the policy that an operation puts back, as it stood: nothing is left of ``before``.

    One that ``continues`` another adds to what that one began. A stand-in does not leave out again
    what was shown beside it.
    """
    form = data.get("policy")
    if not isinstance(form, dict):
        raise InvalidInput("an operation's policy must be an object", field="policy")
    policy = before if data.get("continues") is True else Policy()
    policy = policy.excluding(parse_range(text, primary) for text in texts_of(form, "excluded"))
    standins = list(policy.standins)
    taken = {standin.id for standin in standins}
    given = form.get("standins")
    if not isinstance(given, list):
        raise InvalidInput("an operation's standins must be a list", field="standins")
    for item in given:
        at = text_of(item if isinstance(item, dict) else {}, "at")
        to_datetime(at)
        standin = standin_of(item, primary, at)
        if standin.id in taken:
            raise Conflict(f"the stand-in {standin.id!r} exists already", standin=standin.id)
        taken.add(standin.id)
        standins.append(standin)
    if len(standins) > STANDINS_MAX:
        raise InvalidInput(
            f"a room has at most {STANDINS_MAX} stand-ins", field="standin", limit=STANDINS_MAX
        )
    return Policy(policy.excluded, tuple(standins))


def parts_of(policy: Policy) -> Iterator[dict[str, Any]]:
    """Yield the data of the operations that put a policy back: one, or several for a large one."""
    excluded: list[str] = []
    standins: list[dict[str, Any]] = []
    size, continues = 0, False

    def part() -> dict[str, Any]:
        data: dict[str, Any] = {"policy": {"excluded": excluded[:], "standins": standins[:]}}
        return {**data, "continues": True} if continues else data

    for kept, form in _forms(policy):
        weight = len(_ENCODER.encode(form)) + 1
        if size and size + weight > _PART_BYTES:
            yield part()
            excluded.clear()
            standins.clear()
            size, continues = 0, True
        size += weight
        if kept:
            standins.append(form)
        else:
            excluded.append(form)
    yield part()


def _forms(policy: Policy) -> Iterator[tuple[bool, Any]]:
    for origin, ranges in sorted(policy.excluded.items()):
        for first, last in ranges:
            yield False, range_ref(origin, first, last)
    for standin in policy.standins:
        yield (
            True,
            {
                "id": standin.id,
                "replaces": refs_of(standin.replaces),
                "insert_after": full_ref(*standin.insert_after),
                "speaker": standin.speaker,
                "kind": standin.kind,
                "body": standin.body,
                "at": standin.at,
            },
        )
