"""Versions of messages and lenses for consumers, as the earlier chatroom had them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from agent_chatroom_ledger import versions
from agent_chatroom_ledger.adapters.administration import room_of
from agent_chatroom_ledger.adapters.chatroom import (
    chat_id,
    message_id,
    message_shape,
    policy_shape,
    standin_shape,
    warnings_of,
)
from agent_chatroom_ledger.consumerlens import BUDGET_CHARS, consumer_state, lens_for
from agent_chatroom_ledger.domain.consumerstate import levels_of, runs_of_entry
from agent_chatroom_ledger.domain.policy import StandIn
from agent_chatroom_ledger.domain.references import full_ref
from agent_chatroom_ledger.domain.renderings import Form, Shown, json_chars, json_text
from agent_chatroom_ledger.domain.versions import levels_shape
from agent_chatroom_ledger.errors import Corrupt, InvalidInput
from agent_chatroom_ledger.ledger import Ledger
from agent_chatroom_ledger.preparations import COMPLETED, mark_prepared

if TYPE_CHECKING:
    from pathlib import Path

    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.versions import AuditItem, Bundle


class VersionCalls:
    """The part of ChatroomService that is about shorter versions of messages.

    Versions are the levels "0" to "9", each `{"message", "char_count"}`; level 0 is the message.
    A message that nobody has prepared has ten equal ones.
    """

    root: Path

    def get_message_versions(self, ref: str | Path, message_id: int | str) -> dict[str, Any]:
        """Return the versions of a message: levels, hashes, who prepared them and when."""
        with Ledger.open(self.root, read_only=True) as ledger:
            room = room_of(ledger, ref)
            return _bundle_shape(room, versions.bundle_of(room, message_id))

    def update_message_versions(
        self,
        ref: str | Path,
        message_id: int | str,
        versions: dict[str, Any],
        *,
        prepared_by: str,
        semantic_prepared: bool = True,
    ) -> dict[str, Any]:
        """Set the ten levels of a message, and return them as get_message_versions does.

        Raises ValueError, with nothing written, unless all ten are there, level 0 is the message
        and every count is that of its text.
        """
        from agent_chatroom_ledger.versions import set_versions

        with Ledger.open(self.root) as ledger:
            room = room_of(ledger, ref)
            found = set_versions(
                room, message_id, versions, by=prepared_by, semantic=semantic_prepared
            )
            return _bundle_shape(room, found)

    def audit_message_versions(
        self,
        ref: str | Path | None = None,
        *,
        status: Literal["active", "archived", "all"] = "active",
        semantic: bool = False,
    ) -> dict[str, Any]:
        """Report on every message of a room, or of all rooms of a status, and count those to do.

        With `semantic` a message needs work until it was prepared for its meaning; without, only
        when its versions were made from another text.
        """
        with Ledger.open(self.root, read_only=True) as ledger:
            if ref is None:
                rooms = [
                    ledger.room(found.id if found.status == "archived" else found.path)
                    for found in ledger.rooms(status=status)
                ]
            else:
                rooms = [room_of(ledger, ref)]
            found = [_audit_shape(item) for item in versions.audit(rooms, semantic=semantic)]
        return {
            "status": status,
            "semantic": semantic,
            "chat_count": len(rooms),
            "message_count": len(found),
            "needs_work_count": sum(item["needs_work"] for item in found),
            "messages": found,
        }

    def mark_version_prepped(
        self,
        agent: str,
        cursor_path: Path | str,
        ref: str | Path,
        message_id: int | str,
        mode: str = "semantic",
    ) -> dict[str, Any]:
        """Note in an agent's version cursor that a message is done, and return the cursor.

        Its `completed["<chat_id>:<id>:<mode>"]` holds the hashes of what was there. Raises
        ValueError for a message that still needs work in this mode (semantic or structural), and
        for a cursor file that is another agent's, of another schema or damaged.
        """
        with Ledger.open(self.root, read_only=True) as ledger:
            room = room_of(ledger, ref)
            try:
                found = mark_prepared(room, message_id, agent=agent, mode=mode, path=cursor_path)
            except Corrupt as error:
                if error.code != "consumer_state_invalid":
                    raise
                raise InvalidInput(error.message, code=error.code, **error.fields) from error
        return {
            "agent_name": found["consumer"],
            "updated_at": found["updated_at"],
            COMPLETED: found[COMPLETED],
        }

    def render_consumer_lens(
        self, ref: str | Path, consumer: str, *, threshold_chars: int | None = None
    ) -> dict[str, Any]:
        """Return a room as render_chat_lens does, fitted into a number of characters.

        The oldest messages step to shorter versions, one level at a time, until the messages as
        JSON (compact, in UTF-8 characters) take at most `threshold_chars`, 180,000 by default. The
        choice is kept for this consumer, and said in each message's `selected_version`;
        `consumer_compile` says how the fit came out. When all are at level 9 and it still does not
        fit, its status is `exhausted`, and that is all.
        """
        with Ledger.open(self.root, read_only=True) as ledger:
            room = room_of(ledger, ref)
            primary = room.origin
            form = Form(
                name="chatroom",
                opening="[",
                closing="]",
                between=",",
                item=lambda shown: json_text(_shown_shape(shown, primary)),
                text_chars=json_chars,
            )
            budget = BUDGET_CHARS if threshold_chars is None else threshold_chars
            found = lens_for(room, consumer, budget=budget, form=form)
            return {
                "chat_id": chat_id(room.id),
                "chat_title": room.title,
                "status": room.status,
                "consumer": consumer,
                "consumer_compile": found.compiled(),
                "last_message_id": message_id(found.last) if found.last else 0,
                "message_count": len(found.items),
                "raw_message_count": found.message_count,
                "compile_policy": policy_shape(found.policy, primary),
                "messages": [_shown_shape(shown, primary) for shown in found.items],
                "warnings": [*warnings_of(room), *found.warnings],
            }

    def load_consumer_state(self, ref: str | Path, consumer: str) -> dict[str, Any]:
        """Return what is kept of a consumer's lenses of a room; it changes nothing.

        `selected_versions` has the level of each message that was made shorter, by its id, and
        `consumer_compile` how the fit came out that settled on them (None before there was one).
        """
        with Ledger.open(self.root, read_only=True) as ledger:
            room = room_of(ledger, ref)
            state = consumer_state(room, consumer)
            chosen = levels_of(runs_of_entry(state), room.last_position())
            return {
                "consumer": consumer,
                "chat_id": chat_id(room.id),
                "chat_title": room.title,
                "selected_versions": {
                    str(n) if origin == room.origin else full_ref(origin, n): level
                    for (origin, n), level in chosen
                },
                "consumer_compile": state["compiled"],
                "updated_at": state["updated_at"],
                "state_path": state["path"],
            }


def _shown_shape(shown: Shown, primary: str) -> dict[str, Any]:
    item = shown.item
    shape = standin_shape(item, primary) if isinstance(item, StandIn) else message_shape(item)
    shape["message"] = shown.text
    shape["selected_version"] = shown.level
    return shape


def _bundle_shape(room: Room, bundle: Bundle) -> dict[str, Any]:
    return {
        "chat_id": chat_id(room.id),
        "message_id": bundle.n
        if bundle.origin == room.origin
        else full_ref(bundle.origin, bundle.n),
        "versions": levels_shape(bundle.levels),
        **_facts(bundle),
    }


def _audit_shape(item: AuditItem) -> dict[str, Any]:
    return {
        "chat_id": chat_id(item.room.id),
        "chat_title": item.room.title,
        "message_id": message_id(item.message),
        "needs_work": item.needs_work,
        "reasons": list(item.reasons),
        **_facts(item.bundle),
    }


def _facts(bundle: Bundle) -> dict[str, Any]:
    return {
        "semantic_prepared": bundle.semantic,
        "prepared_by": bundle.prepared_by or None,
        "prepared_at": bundle.prepared_at or None,
        "source_hash": bundle.source_hash,
        "bundle_hash": bundle.bundle_hash,
    }
