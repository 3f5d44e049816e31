"""The command names of the earlier chatroom, for scripts that use them: JSON in every case.

They are hidden from the help text, and thin over ChatroomService. What changes a room for good is a
dry run without `--apply`; it prints the report of what it would do.
"""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from agent_chatroom_ledger.cli import output
from agent_chatroom_ledger.cli.options import common

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.plans import Plan
    from agent_chatroom_ledger.room import Room
    from agent_chatroom_ledger.service import ChatroomService

_PATH = click.Path(path_type=Path, dir_okay=False)
_STATUS = click.Choice(["active", "archived", "all"])
_SOURCE = click.Choice(["state", "canonical", "messages"])
_MODES = click.Choice(["detailed-standin", "short-standin", "no-standin"])


def _option(*names: str, help: str, **settings: Any) -> click.Option:  # noqa: A002, ANN401 - the parameters of click.option
    return click.Option(names, help=help, **settings)


def _chat() -> click.Option:
    return _option(
        "--chat", "--chat-id", "--room", "ref", required=True, metavar="REF", help="An id or path."
    )


def _agent() -> tuple[click.Option, click.Option]:
    return (
        _option("--agent", required=True, metavar="NAME", help="Whose cursor it is."),
        _option("--cursor", "cursor_path", required=True, type=_PATH, help="The cursor's file."),
    )


def _message(*, required: bool = True) -> click.Option:
    return _option("--message-id", metavar="ID", required=required, help="The message's id.")


def _ids() -> click.Option:
    return _option(
        "--message-ids", "--message-id", "ids", required=True, multiple=True, metavar="IDS",
        help="Ids of messages, as 1,2,5-9; repeat it.",
    )  # fmt: skip


def _administrative() -> tuple[click.Option, ...]:
    return (
        _option("--requested-by", metavar="NAME", default="ChatroomService", help="Who asks."),
        _option("--apply", is_flag=True, help="Write; without it the report is printed."),
    )


def _placing(*what: click.Option) -> tuple[click.Option, ...]:
    return (
        _option("--source", required=True, metavar="REF", help="The room to copy from."),
        *what,
        _option("--target", required=True, metavar="REF", help="The room to copy to."),
        _option("--reason", "placement_reason", required=True, metavar="TEXT", help="Why."),
        *_administrative(),
    )


def _range() -> tuple[click.Option, click.Option]:
    return (
        _option("--start", required=True, type=int, metavar="ID", help="The first message."),
        _option("--end", required=True, type=int, metavar="ID", help="The last message."),
    )


def _policy(kind: str) -> Callable[..., Any]:
    """Return a call that plans a change of policy, or makes it and compiles the view."""

    def call(
        service: ChatroomService,
        ref: str,
        requested_by: str,
        *,
        apply: bool,
        **given: Any,  # noqa: ANN401 - the values of whatever options a command has
    ) -> dict[str, Any]:
        from agent_chatroom_ledger.adapters.administration import carried_out, room_of
        from agent_chatroom_ledger.ledger import Ledger

        with Ledger.open(service.root, read_only=not apply) as ledger:
            room = room_of(ledger, ref)
            report = carried_out(_policy_plan(kind, room, given, requested_by), apply=apply)
            if apply:
                room.compile()
        return report

    return call


def _policy_plan(kind: str, room: Room, given: Mapping[str, Any], by: str) -> Plan:
    from agent_chatroom_ledger import operations

    if kind == "clear":
        return operations.plan_clear(room, by=by)
    refs = ",".join(given["ids"])
    if kind == "standin":
        return operations.plan_standin(
            room,
            refs,
            given["message"],
            insert_after=given["insert_after"],
            speaker=given["speaker"],
            kind=given["standin_kind"],
            standin_id=given["standin_id"],
            by=by,
        )
    plan_of = operations.plan_exclude if kind == "exclude" else operations.plan_include
    return plan_of(room, refs, by=by)


def _update_versions(
    service: ChatroomService, ref: str, message_id: str, file: Path, prepared_by: str
) -> dict[str, Any]:
    import msgspec

    from agent_chatroom_ledger.errors import InvalidInput

    try:
        versions = msgspec.json.decode(file.read_bytes())
    except msgspec.DecodeError as error:
        raise InvalidInput(f"{file} is not JSON: {error}", field="versions") from None
    if not isinstance(versions, dict):
        raise InvalidInput(f"{file} holds no JSON object", field="versions")
    return service.update_message_versions(ref, message_id, versions, prepared_by=prepared_by)


def _call(name: str, wrapped: str | None = None) -> Callable[..., Any]:
    """Return the call of a method; a list of things comes back under a name."""

    def call(service: ChatroomService, **given: Any) -> Any:  # noqa: ANN401 - JSON values
        found = getattr(service, name)(**given)
        return found if wrapped is None else {wrapped: found}

    return call


def _apply_policy(
    service: ChatroomService,
    ids: tuple[str, ...],
    **given: Any,  # noqa: ANN401 - the values of whatever options a command has
) -> dict[str, Any]:
    refs = [ref for text in ids for ref in text.split(",")]
    return service.apply_compile_policy_operation(ids=refs, **given)


# Name: what is called, what it does in a sentence, and its options.
_COMMANDS: Final[
    dict[str, tuple[Callable[..., Any], str, Callable[[], tuple[click.Option, ...]]]]
] = {
    "scan": (
        _call("scan_unread", "unread"),
        "List rooms with unread messages.",
        lambda: (
            *_agent(),
            _option("--status", type=_STATUS, default="active", help="Of which rooms."),
            _option("--source", type=_SOURCE, default="state", help="What is counted."),
            _option(
                "--participant-gated/--all", default=True, help="Only rooms that list the agent."
            ),
        ),
    ),
    "mark-seen": (
        _call("mark_seen"),
        "Acknowledge a room through a message.",
        lambda: (*_agent(), _chat(), _message(required=False)),
    ),
    "render-lens": (_call("render_chat_lens"), "Show a room after its policy.", lambda: (_chat(),)),
    "compile-policy": (_call("get_compile_policy"), "Show the policy.", lambda: (_chat(),)),
    "exclude-messages": (
        _policy("exclude"),
        "Leave messages out.",
        lambda: (_chat(), _ids(), *_administrative()),
    ),
    "include-messages": (
        _policy("include"),
        "Show messages again.",
        lambda: (_chat(), _ids(), *_administrative()),
    ),
    "add-standin": (
        _policy("standin"),
        "Show a text in the place of messages.",
        lambda: (
            _chat(),
            _ids(),
            _option("--message", required=True, metavar="TEXT", help="The text."),
            _option("--insert-after", metavar="ID", help="Where it is shown."),
            _option("--speaker", default="System", help="Under whose name."),
            _option("--kind", "standin_kind", default="system", help="Its kind."),
            _option("--standin-id", metavar="ID", help="An id of your own."),
            *_administrative(),
        ),
    ),
    "clear-compile-policy": (
        _policy("clear"),
        "Show everything again.",
        lambda: (_chat(), *_administrative()),
    ),
    "participant-coverage": (
        _call("participant_coverage"),
        "Tell which rooms list a name.",
        lambda: (
            _option("--name", required=True, metavar="NAME", help="The name."),
            _option("--status", type=_STATUS, default="active", help="Of which rooms."),
        ),
    ),
    "add-participant": (
        _call("add_participant_operation"),
        "Add a participant.",
        lambda: (
            _chat(),
            _option("--name", required=True, metavar="NAME", help="The name."),
            _option("--threshold-chars", type=int, help="How much to be shown at most."),
            *_administrative(),
        ),
    ),
    "remove-participant": (
        _call("remove_participant_operation"),
        "Remove a participant.",
        lambda: (
            _chat(),
            _option("--name", required=True, metavar="NAME", help="The name."),
            _option("--reason", default="", metavar="TEXT", help="Why."),
            *_administrative(),
        ),
    ),
    "version-audit": (
        _call("audit_message_versions"),
        "Report on the versions of messages.",
        lambda: (
            _option("--chat", "--chat-id", "--room", "ref", metavar="REF", help="One room only."),
            _option("--status", type=_STATUS, default="active", help="Of which rooms."),
            _option("--semantic", is_flag=True, help="Prepared for their meaning as well."),
        ),
    ),
    "update-message-versions": (
        _update_versions,
        "Set the ten levels of a message.",
        lambda: (
            _chat(),
            _message(),
            _option("--versions", "file", required=True, type=_PATH, help="A JSON file."),
            _option("--prepared-by", required=True, metavar="NAME", help="Who made them."),
        ),
    ),
    "mark-version-prepped": (
        _call("mark_version_prepped"),
        "Note that a message's versions are done.",
        lambda: (
            *_agent(),
            _chat(),
            _message(),
            _option(
                "--mode",
                type=click.Choice(["semantic", "structural"]),
                default="semantic",
                help="In which sense.",
            ),
        ),
    ),
    "consumer-state": (
        _call("load_consumer_state"),
        "Show what is kept of a consumer's lenses.",
        lambda: (_chat(), _option("--consumer", required=True, metavar="NAME", help="Whose.")),
    ),
    "render-consumer-lens": (
        _call("render_consumer_lens"),
        "Fit a room into a number of characters.",
        lambda: (
            _chat(),
            _option("--consumer", required=True, metavar="NAME", help="For whom."),
            _option("--threshold-chars", type=int, help="How many characters."),
        ),
    ),
    "create-room": (
        _call("create_room_operation"),
        "Make a room.",
        lambda: (
            _option("--title", required=True, metavar="TITLE", help="Its title."),
            _option("--folder", default="Parking_Lot", metavar="PATH", help="Where."),
            _option(
                "--participant", "participants", multiple=True, metavar="NAME", help="Repeat it."
            ),
            *_administrative(),
        ),
    ),
    "archive-room": (
        _call("archive_room_operation"),
        "Archive a room.",
        lambda: (_chat(), *_administrative()),
    ),
    "restore-room": (
        _call("restore_room_operation"),
        "Bring an archived room back.",
        lambda: (_chat(), *_administrative()),
    ),
    "place-message": (
        _call("place_message_operation"),
        "Copy a message into another room.",
        lambda: _placing(_message()),
    ),
    "duplicate-message": (
        _call("duplicate_message_operation"),
        "Copy a message into another room once more.",
        lambda: _placing(_message()),
    ),
    "place-range": (
        _call("place_range_operation"),
        "Copy messages into another room.",
        lambda: _placing(*_range()),
    ),
    "duplicate-range": (
        _call("duplicate_range_operation"),
        "Copy messages into another room once more.",
        lambda: _placing(*_range()),
    ),
    "apply-compile-policy": (
        _apply_policy,
        "Leave messages out, with a stand-in or without.",
        lambda: (
            _chat(),
            _ids(),
            _option("--mode", type=_MODES, default="detailed-standin", help="Which stand-in."),
            _option("--standin-message", metavar="TEXT", help="Its text."),
            *_administrative(),
        ),
    ),
    "operation-log": (
        _call("read_operation_log", "operations"),
        "Show the operations that were applied.",
        lambda: (_option("--limit", type=click.IntRange(min=1), help="Only the newest."),),
    ),
}


def command_of(name: str) -> click.Command:
    """Return the command of an earlier name."""
    call, text, options = _COMMANDS[name]

    @common
    @click.pass_obj
    def run(session: Session, /, **given: Any) -> None:  # noqa: ANN401 - the values of whatever options a command has
        session.json = True
        output.write_json(call(_service(session, create=name == "create-room"), **given))

    parameters = [*options(), *reversed(getattr(run, "__click_params__", []))]
    return click.Command(name, callback=run, params=parameters, help=text, hidden=True)


def _service(session: Session, *, create: bool) -> ChatroomService:
    root = session.root()
    if not root.exists and not create:
        from agent_chatroom_ledger.cli.root import missing

        raise missing(root)
    from agent_chatroom_ledger.service import ChatroomService

    gc.enable()
    return ChatroomService(root.path)
