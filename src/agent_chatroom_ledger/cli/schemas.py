"""The JSON documents of the commands, one type each: the contract of `--json`.

The commands build plain objects and do not import this module, so that it costs them nothing; the
tests decode what the commands really print into these types, strictly, and the reference prints
them as JSON Schema.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

Time = Annotated[str, msgspec.Meta(description="UTC, microseconds: 2026-11-29T21:27:42.123456Z")]
Position = Annotated[
    dict[str, int], msgspec.Meta(description="how far: the last number of each origin")
]
Ref = Annotated[
    str, msgspec.Meta(description="57, or 57@origin where the room was created elsewhere")
]
FullRef = Annotated[str, msgspec.Meta(description="57@origin")]


class Shape(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A JSON object with exactly these fields."""


class RoomRef(Shape):
    """Which room."""

    id: str
    title: str
    path: Annotated[str, msgspec.Meta(description="from the ledger's root: rooms/design-review")]


class MessageShape(msgspec.Struct, kw_only=True):
    """A record as it is stored, absent fields left out, with its origin and reference.

    Fields that a newer version has added are kept and shown.
    """

    n: int
    id: str
    at: Time
    author: str
    kind: str
    origin: str
    ref: Ref
    said_at: Time | None = None
    to: list[str] = []
    mentions: list[str] = []
    body: str = ""
    reply_to: str | None = None
    correlation: str | None = None
    cause: str | None = None
    status: str | None = None
    artifacts: list[str] = []
    data: dict[str, Any] | None = None
    placed_from: dict[str, Any] | None = None


class Failure(Shape):
    """What went wrong: a stable code, a sentence, and details."""

    code: str
    message: str
    fields: dict[str, Any]


class ErrorDocument(Shape):
    """Any command that fails."""

    error: Failure


class RootDocument(Shape):
    """Which ledger, and what named it: option, environment, directory or default."""

    root: str
    source: str
    exists: bool


class InitDocument(Shape):
    """The ledger; `created` is false when it was there."""

    root: str
    origin: str
    created: bool


class PostDocument(Shape):
    """The message as it is stored; with an id that was used already, the first one."""

    room: RoomRef
    message: MessageShape


class ReadDocument(Shape):
    """The messages, oldest first."""

    room: RoomRef
    messages: list[MessageShape]


class UnreadItem(Shape):
    """A room with unread messages; `messages` only with --messages."""

    room: RoomRef
    count: int
    position: Position
    newest: Position
    messages: list[MessageShape] | None = None


class UnreadDocument(Shape):
    """The rooms that hold messages past the consumer's cursor."""

    consumer: str
    total: int
    rooms: list[UnreadItem]


class SeenDocument(Shape):
    """Where the cursor stands now, and whether it moved."""

    consumer: str
    room: RoomRef
    position: Position
    moved: bool
    cursor: Annotated[str, msgspec.Meta(description="the cursor's file")]


class CompileDocument(Shape):
    """The pages that were written, and the newest page of the view."""

    room: RoomRef
    pages: list[str]
    visible_path: str | None


class BadLine(Shape):
    """A line that could not be taken as it is."""

    file: str
    line: int
    reason: str


class ImportDocument(Shape):
    """What became of every line; `bad_lines` holds the first 1,000 of `bad_count`."""

    room: RoomRef
    files: int
    lines: int
    messages: int
    events: int
    skipped: int
    bad_count: int
    bad_lines: list[BadLine]


class CompletionDocument(Shape):
    """The completion script."""

    shell: str
    script: str


class StandInShape(Shape):
    """A text shown in the place of messages."""

    id: str
    replaces: list[FullRef]
    insert_after: FullRef
    speaker: str
    kind: str
    body: str
    at: Time


class PolicyShape(Shape):
    """What is left out, as references and ranges (3@origin, 5-9@origin), and the stand-ins."""

    excluded: list[str]
    standins: list[StandInShape]


class FollowedLine(Shape):
    """One message, as soon as there is one."""

    room: RoomRef
    message: MessageShape


class ListItem(Shape):
    """A room; `newest` is the number of the newest message of each origin."""

    id: str
    title: str
    path: str
    folder: str
    members: list[str]
    origin: Annotated[str, msgspec.Meta(description="the one that created the room")]
    created_at: Time
    created_by: str
    newest: Position
    last_at: Time | None


class ListDocument(Shape):
    """The rooms, by path."""

    rooms: list[ListItem]


class ShowDocument(Shape):
    """A room: who it is, how far it has come, its policy, and the newest page of its view."""

    id: str
    title: str
    path: str
    folder: str
    slug: str
    members: list[str]
    origin: Annotated[str, msgspec.Meta(description="the one that created the room")]
    created_at: Time
    created_by: str
    newest: Position
    policy: PolicyShape
    visible_path: str | None


class LensItemShape(Shape):
    """Either a message or a stand-in."""

    message: MessageShape | None = None
    standin: StandInShape | None = None


class LensDocument(Shape):
    """What the policy leaves, in order."""

    room: RoomRef
    items: list[LensItemShape]
    policy: PolicyShape


class PolicyDocument(Shape):
    """The policy of a room."""

    room: RoomRef
    excluded: list[str]
    standins: list[StandInShape]


class ActionShape(msgspec.Struct, kw_only=True):
    """One thing that is done; some types add what they are about.

    The status is would_… in a plan, then a word such as placed or excluded; noop and
    skipped_duplicate in both.
    """

    type: str
    status: str
    text: str | None = None


class OperationReport(msgspec.Struct, kw_only=True):
    """The report of an operation; the record of an applied one keeps it."""

    operation_id: Annotated[str, msgspec.Meta(description="of its record, once it is applied")]
    operation_type: str
    dry_run: bool
    applied: bool
    requested_by: str
    created_at: Time
    source: dict[str, Any] | None
    target: dict[str, Any] | None
    actions: list[ActionShape]
    provenance: dict[str, Any] | None
    compile_policy: dict[str, Any] | None
    warnings: list[str]
    verification: dict[str, Any] | None


class PlanReport(OperationReport, kw_only=True):
    """What an operation would do, or has done; each operation adds what it is about."""

    operation: str
    room: Annotated[str, msgspec.Meta(description="its path; empty for the whole ledger")]
    reason: str


class PlanDocument(Shape):
    """A plan, or what came of it; `apply_with` is the command that writes it."""

    applied: bool
    report: PlanReport
    apply_with: str | None = None


class MembersDocument(Shape):
    """The members of a room; a plan with add and remove."""

    room: RoomRef
    members: list[str]


class CoveredRoom(Shape):
    """A room, active or archived."""

    id: str
    title: str
    path: str
    status: str


class CoverageDocument(Shape):
    """The rooms of a status that list a name as a member, and those that do not."""

    name: str
    status: str
    listed: list[CoveredRoom]
    not_listed: list[CoveredRoom]


class LogItem(Shape):
    """A commit; `frame` is null for one that the ledger did not make, `patch` with --patch."""

    commit: str
    at: Annotated[str, msgspec.Meta(description="when it was written, UTC, in seconds")]
    said_at: Annotated[str, msgspec.Meta(description="when it was said, UTC, in seconds")]
    author: str
    email: str
    subject: str
    rooms: list[str]
    kinds: list[str]
    messages: list[FullRef]
    operations: list[FullRef]
    records: list[Annotated[str, msgspec.Meta(description="the id of a record")]]
    frame: int | None
    requested_by: str
    reason: str
    patch: str | None = None


class LogDocument(Shape):
    """The commits, newest first."""

    entries: list[LogItem]


class DiffMessages(Shape):
    """Messages added, oldest first; `missing` are those that only the first commit has."""

    added: list[MessageShape]
    missing: list[str]


class DiffPolicy(Shape):
    """What is left out now and was not, what is shown again, and the stand-ins that changed."""

    excluded: list[str]
    included: list[str]
    standins_added: list[StandInShape]
    standins_removed: list[StandInShape]


class DiffMembers(Shape):
    """Who joined, and who left."""

    added: list[str]
    removed: list[str]


class DiffVersion(Shape):
    """The versions of one message: set, changed or removed."""

    message: FullRef
    change: str


class DiffOperation(Shape):
    """An operation that was carried out in between, in words."""

    ref: FullRef
    at: Time
    by: str
    kind: str
    text: str


class DiffDocument(Shape):
    """A room at two commits; `created` and `gone` say that only one of them has it."""

    room: RoomRef
    before: str
    after: str
    created: bool
    gone: bool
    messages: DiffMessages
    policy: DiffPolicy
    members: DiffMembers
    versions: list[DiffVersion]
    operations: list[DiffOperation]


class IssueShape(Shape):
    """Something that is wrong."""

    severity: str
    code: str
    message: str
    path: str | None


class VerifyDocument(Shape):
    """Whether the ledger is sound, what is wrong, and how much was looked at.

    `main` is the commit that was verified, `since` the one after which history was read.
    """

    ok: bool
    error_count: int
    issues: list[IssueShape]
    counts: dict[str, int]
    main: str
    since: str


class DemoStep(Shape):
    """One thing that the demonstration showed."""

    title: str
    lines: list[str]


class DemoDocument(Shape):
    """Where the ledger is, what was shown, and three commands to go on with."""

    root: str
    steps: list[DemoStep]
    next: list[str]


DOCUMENTS: Final[dict[str, type]] = {
    "post": PostDocument,
    "read": ReadDocument,
    "tail": ReadDocument,
    "unread": UnreadDocument,
    "seen": SeenDocument,
    "list": ListDocument,
    "show": ShowDocument,
    "lens": LensDocument,
    "log": LogDocument,
    "diff": DiffDocument,
    "init": InitDocument,
    "create": PlanDocument,
    "members": MembersDocument,
    "members --apply": PlanDocument,
    "coverage": CoverageDocument,
    "policy show": PolicyDocument,
    "policy exclude": PlanDocument,
    "policy include": PlanDocument,
    "policy standin": PlanDocument,
    "policy clear": PlanDocument,
    "compile": CompileDocument,
    "verify": VerifyDocument,
    "verify --repair": PlanDocument,
    "import irc": ImportDocument,
    "root": RootDocument,
    "demo": DemoDocument,
    "completion": CompletionDocument,
}
# What a command writes line by line.
LINES: Final[dict[str, type]] = {"tail": FollowedLine}
