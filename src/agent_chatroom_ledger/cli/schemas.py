"""The JSON documents of the commands, one type each: the contract of `--json`.

The commands build plain objects and do not import this module, so that it costs them nothing; the
tests decode what the commands really print into these types, strictly, and the reference prints
them as JSON Schema.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from agent_chatroom_ledger.cli.agentschemas import (
    ConfigDocument,
    InboxDocument,
    JoinDocument,
    LeaveDocument,
    PostDocument,
    ReceiptsDocument,
    WaitDocument,
)
from agent_chatroom_ledger.cli.hookschemas import HookDocument, HooksDocument
from agent_chatroom_ledger.cli.pastschemas import DiffDocument, LogDocument
from agent_chatroom_ledger.cli.planschemas import (
    CoverageDocument,
    MembersDocument,
    OperationsDocument,
    PlanDocument,
)
from agent_chatroom_ledger.cli.presenceschemas import (
    PinnedDocument,
    PinsDocument,
    WhoDocument,
)
from agent_chatroom_ledger.cli.schemabase import (
    MessageShape,
    PolicyShape,
    Position,
    RoomRef,
    Shape,
    StandInShape,
    Time,
)
from agent_chatroom_ledger.cli.servingschemas import (
    McpDocument,
    RevokedDocument,
    TokenDocument,
    TokensDocument,
)
from agent_chatroom_ledger.cli.setupschemas import SetupDocument, SetupStatusDocument
from agent_chatroom_ledger.cli.versionschemas import (
    AuditDocument,
    ConsumerLensDocument,
    PrepDocument,
    VersionDiffDocument,
    VersionLogDocument,
    VersionsDocument,
)


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


class FollowedLine(Shape):
    """One message, as soon as there is one."""

    room: RoomRef
    message: MessageShape


class ListItem(Shape):
    """A room; `newest` is the number of the newest message of each origin."""

    id: str
    title: str
    path: str
    status: Literal["active", "archived"]
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


class ExportDocument(Shape):
    """What was written to --output."""

    room: RoomRef
    format: str
    output: str
    bytes: int


class SpaceShape(Shape):
    """Files and bytes on disk: git's packs and loose objects, the journal, what is derived."""

    packs: int
    pack_bytes: int
    loose_objects: int
    loose_bytes: int
    generations: int
    journal_bytes: int
    derived_bytes: int


class StatsDocument(Shape):
    """What the ledger holds; `authors` are the messages of each name, most first."""

    rooms: int
    archived: int
    messages: int
    operations: int
    authors: dict[str, int]
    record_bytes: int
    bytes_per_message: float
    space: SpaceShape


class TidiedDocument(Shape):
    """Before and after; `commit_graph` is who wrote it: git, ledger or none."""

    before: SpaceShape
    after: SpaceShape
    commit_graph: str


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
    "dm": PostDocument,
    "reply-all": PostDocument,
    "join": JoinDocument,
    "leave": LeaveDocument,
    "read": ReadDocument,
    "tail": ReadDocument,
    "unread": UnreadDocument,
    "inbox": InboxDocument,
    "wait": WaitDocument,
    "receipts": ReceiptsDocument,
    "config show": ConfigDocument,
    "config set": ConfigDocument,
    "config unset": ConfigDocument,
    "seen": SeenDocument,
    "who": WhoDocument,
    "pins list": PinsDocument,
    "pins set": PinnedDocument,
    "pins remove": PinnedDocument,
    "list": ListDocument,
    "show": ShowDocument,
    "lens": LensDocument,
    "lens --for": ConsumerLensDocument,
    "log": LogDocument,
    "diff": DiffDocument,
    "export": ExportDocument,
    "init": InitDocument,
    "create": PlanDocument,
    "members": MembersDocument,
    "members --apply": PlanDocument,
    "coverage": CoverageDocument,
    "archive": PlanDocument,
    "restore": PlanDocument,
    "operations": OperationsDocument,
    "place": PlanDocument,
    "duplicate": PlanDocument,
    "policy show": PolicyDocument,
    "policy exclude": PlanDocument,
    "policy include": PlanDocument,
    "policy standin": PlanDocument,
    "policy clear": PlanDocument,
    "versions show": VersionsDocument,
    "versions set": PlanDocument,
    "versions audit": AuditDocument,
    "versions prep": PrepDocument,
    "versions log": VersionLogDocument,
    "versions diff": VersionDiffDocument,
    "versions restore": PlanDocument,
    "compile": CompileDocument,
    "stats": StatsDocument,
    "gc": TidiedDocument,
    "verify": VerifyDocument,
    "verify --repair": PlanDocument,
    "import irc": ImportDocument,
    "root": RootDocument,
    "hooks install": HooksDocument,
    "hooks uninstall": HooksDocument,
    "hook": HookDocument,
    "mcp": McpDocument,
    "tokens create": TokenDocument,
    "tokens list": TokensDocument,
    "tokens revoke": RevokedDocument,
    "demo": DemoDocument,
    "setup claude": SetupDocument,
    "setup codex": SetupDocument,
    "setup cursor": SetupDocument,
    "setup gemini": SetupDocument,
    "setup remove": SetupDocument,
    "setup status": SetupStatusDocument,
    "completion": CompletionDocument,
}
# What a command writes line by line.
LINES: Final[dict[str, type]] = {"tail": FollowedLine}
