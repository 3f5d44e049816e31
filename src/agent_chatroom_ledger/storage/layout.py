"""Where everything of a ledger lies on disk (docs/design.md 3)."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from agent_chatroom_ledger.domain.names import is_origin

if TYPE_CHECKING:
    from pathlib import Path

LEDGER_FILE = "ledger.json"
ATTRIBUTES_FILE = ".gitattributes"
ROOMS = "rooms"
OPERATIONS = "operations"

_LOGS = ("messages", OPERATIONS)
_OURS = ("rooms/", "operations/", "archive/", "artifacts/")


class Layout:
    """The paths of one ledger; `root` is absolute and `writable` says whether we may write."""

    def __init__(self, root: Path, *, writable: bool = True) -> None:
        """Name the ledger's directory; nothing is looked at."""
        self.root = root
        self.writable = writable

    def __eq__(self, other: object) -> bool:
        """Compare by value, as a dataclass does, which takes a while to make at every start."""
        if type(other) is not type(self):
            return NotImplemented
        return (self.root, self.writable) == (other.root, other.writable)

    def __hash__(self) -> int:
        """Agree with the comparison."""
        return hash((self.root, self.writable))

    @cached_property
    def git(self) -> Path:
        """The ordinary, non-bare git directory."""
        return self.root / ".git"

    @cached_property
    def private(self) -> Path:
        """What is not versioned; inside .git, because `git clean -fdx` spares it there."""
        return self.git / "ledger"

    @cached_property
    def journal(self) -> Path:
        """Frames that no checkpoint has covered yet, a file per generation."""
        return self.private / "journal"

    @cached_property
    def cursors(self) -> Path:
        """One cursor file per consumer."""
        return self.private / "cursors"

    @cached_property
    def consumers(self) -> Path:
        """One file per consumer: which levels of messages its lenses have settled on."""
        return self.private / "consumers"

    @cached_property
    def preparations(self) -> Path:
        """One file per agent: which messages' versions it has prepared or looked at."""
        return self.private / "preparations"

    @cached_property
    def receipts(self) -> Path:
        """What was handed over to whom, and how far: a SQLite file that is no derived data."""
        return self.private / "receipts" / "receipts.sqlite3"

    @cached_property
    def config(self) -> Path:
        """The settings of this ledger on this machine."""
        return self.private / "config.toml"

    @cached_property
    def presence(self) -> Path:
        """One file per name that somebody lives under, and below it one per waiting process."""
        return self.private / "presence"

    @cached_property
    def pins(self) -> Path:
        """Which names sessions, panes and directories have."""
        return self.private / "pins.json"

    @cached_property
    def artifacts(self) -> Path:
        """Artifacts that wait for the commit of the record that names them."""
        return self.private / "artifacts"

    @cached_property
    def locks(self) -> Path:
        """Files that are only ever locked, and the permanent file our git locks link to."""
        return self.private / "locks"

    @cached_property
    def own_mark(self) -> str:
        """The permanent file that our marks in .git link to, so that they are known as ours."""
        return f"{self.locks}/own"

    @cached_property
    def quarantine(self) -> Path:
        """Foreign or damaged bytes that were moved out of the way, never deleted by us."""
        return self.private / "quarantine"

    @cached_property
    def tmp(self) -> Path:
        """Temporary files; `git gc` deletes them elsewhere."""
        return self.private / "tmp"

    @cached_property
    def state(self) -> Path:
        """A hint: which frame main holds."""
        return self.private / "state"

    @cached_property
    def own_packs(self) -> Path:
        """The list of packs that we wrote ourselves."""
        return self.private / "packs"

    @cached_property
    def index_db(self) -> Path:
        """The derived SQLite index."""
        return self.private / "index.sqlite3"

    @cached_property
    def packs(self) -> Path:
        """The pack directory of git's object store."""
        return self.git / "objects" / "pack"


def is_ours(path: str) -> bool:
    """Tell whether a path in a commit belongs to the ledger rather than to the user."""
    return path.startswith(_OURS) or path in (LEDGER_FILE, ATTRIBUTES_FILE)


def is_log(path: str) -> bool:
    """Tell whether a path is a segment of an origin's log, whose bytes only grow (invariant 1)."""
    if not path.endswith(".jsonl"):
        return False
    parts = path.split("/")
    if parts[0] == OPERATIONS:
        return len(parts) == 5 and is_origin(parts[-4])
    return parts[0] == ROOMS and len(parts) > 6 and parts[-5] in _LOGS and is_origin(parts[-4])


def nobodys_log(directory: str) -> str | None:
    """Return the directory that stands where an origin's log would, under no origin's name.

    ``directory`` is one that holds a file. None when it lies in no such place.
    """
    parts = directory.split("/")
    for depth, part in enumerate(parts[:-1]):
        # What stands right below `rooms` is a folder or a room, whatever its name.
        if part in _LOGS and depth != 1 and not is_origin(parts[depth + 1]):
            return "/".join(parts[: depth + 2])
    return None


def room_of_log(log: str) -> str | None:
    """Return the room of a log such as `rooms/a/messages/mbp`, None for the ledger's own log."""
    if log.startswith(ROOMS + "/"):
        return log.rsplit("/", 2)[0]
    return None


def is_ledger(directory: Path) -> bool:
    """Tell whether a directory is the root of a ledger: also one that lost its work tree."""
    git = directory / ".git"
    return ((directory / LEDGER_FILE).is_file() and git.exists()) or (git / "ledger").is_dir()


def find_root(start: Path) -> Path | None:
    """Return the nearest directory from `start` upwards that is a ledger, as git looks for one."""
    for directory in (start, *start.parents):
        if is_ledger(directory):
            return directory
    return None
