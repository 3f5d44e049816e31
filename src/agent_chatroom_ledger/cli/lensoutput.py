"""A lens for a consumer, or in a format for a model: as a document, as lines, as it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec

from agent_chatroom_ledger.cli.output import write_text
from agent_chatroom_ledger.cli.shapes import message_shape, policy_shape, room_shape, standin_shape
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.cli.transcript import transcript
from agent_chatroom_ledger.consumerlens import BUDGET_CHARS, ConsumerLens, lens_for
from agent_chatroom_ledger.domain.display import terminal_safe
from agent_chatroom_ledger.domain.policy import StandIn
from agent_chatroom_ledger.domain.renderings import Shown, form_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.domain.lenses import LensItem
    from agent_chatroom_ledger.room import Room


def show_for(
    session: Session,
    room: Room,
    consumer: str,
    *,
    budget: int | None,
    form: str | None,
    reset: bool,
    at: str | None,
) -> None:
    """Fit a room into a consumer's budget and show it; how it came out goes to stderr."""
    found = lens_for(
        room,
        consumer,
        budget=BUDGET_CHARS if budget is None else budget,
        form=form or "json",
        reset=reset,
        at=at,
    )
    if session.json:
        session.show(_document(found, rendered=form is not None), ())
        return
    if form is None:
        session.show({}, transcript([_as_shown(shown) for shown in found.items], session.paint))
    else:
        write_rendering(found.rendering)
    how = f"{found.status}: {found.used:,} of {found.budget:,} characters as {found.form}"
    session.say(f"{how}, highest version {found.highest_level}")
    for warning in found.warnings:
        session.say(f"warning: {plain(warning)}")


def show_as(items: Iterable[LensItem], form: str) -> None:
    """Write all items whole in a format."""
    written = form_of(form)
    write_rendering(written.joined(written.item(Shown(item, 0, item.body)) for item in items))


def write_rendering(text: str) -> None:
    """Write a rendering as it is; on a terminal, which controls could move, they are shown."""
    safe = terminal_safe(text, lines=True) if sys.stdout.isatty() else text
    write_text(safe if safe.endswith("\n") else f"{safe}\n")


def _as_shown(shown: Shown) -> LensItem:
    return msgspec.structs.replace(shown.item, body=shown.text)


def _document(found: ConsumerLens, *, rendered: bool) -> dict[str, Any]:
    return {
        "room": room_shape(found.room),
        "consumer": found.consumer,
        "consumer_compile": found.compiled(),
        "format": found.form,
        "items": [_item(shown) for shown in found.items],
        "policy": policy_shape(found.policy),
        "warnings": list(found.warnings),
        "rendering": found.rendering if rendered else None,
    }


def _item(shown: Shown) -> dict[str, Any]:
    if isinstance(shown.item, StandIn):
        return {"selected_version": 0, "standin": standin_shape(shown.item)}
    message = {**message_shape(shown.item), "body": shown.text}
    return {"selected_version": shown.level, "message": message}
