"""Why a commit is not the one that the ledger makes of its records, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_chatroom_ledger.errors import Corrupt
from agent_chatroom_ledger.storage.layout import is_log
from agent_chatroom_ledger.storage.objects import Objects
from agent_chatroom_ledger.storage.trees import differences

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent_chatroom_ledger.storage.issues import Findings
    from agent_chatroom_ledger.storage.objects import CommitInfo
    from agent_chatroom_ledger.storage.replay import Replay

_PATHS_MAX = 5


class _Both(Objects):
    """Objects that were made and stored nowhere, before those that are there."""

    def __init__(self, objects: Objects, held: Mapping[str, tuple[int, bytes]]) -> None:
        self._objects = objects
        self._held = held

    def get(self, oid: str) -> tuple[int, bytes]:
        return self._held.get(oid) or self._objects.get(oid)


def _header(data: bytes, key: bytes) -> str:
    for line in data.partition(b"\n\n")[0].split(b"\n"):
        if line.startswith(key + b" "):
            return line[len(key) + 1 :].decode("utf-8", "replace")
    return ""


def explain(
    objects: Objects, replay: Replay, commit: CommitInfo, data: bytes, found: Findings
) -> None:
    """Note where a commit differs from the one that was made of its records."""
    oid, short = commit.oid, f"commit {commit.oid[:12]}"
    made = replay.pack.made
    for key, who in ((b"author", "its author"), (b"committer", "its committer")):
        says, right = _header(data, key), _header(made, key)
        if made and says != right:
            found.error(
                "forged_author", f"{short} says {who} is {says}; its records make it {right}", oid
            )
    if made and data.partition(b"\n\n")[2] != made.partition(b"\n\n")[2]:
        found.error(
            "commit_record_mismatch", f"{short}: its subject or trailers are not its records'", oid
        )
    before = found.report(main="", since="").error_count
    try:
        for number, (path, _, old, _, new) in enumerate(
            differences(_Both(objects, replay.pack.held), replay.tree_made(), commit.tree)
        ):
            if number == _PATHS_MAX:
                found.error("projection_mismatch", f"{short} differs in further files", oid)
                break
            if is_log(path):
                what = "lacks records that were there" if new is None else "is not what it was"
                found.error("log_changed", f"{short}: {path} {what}, but for new records", path)
            elif new is None:
                found.error("projection_mismatch", f"{short}: {path} is missing", path)
            elif old is None:
                found.error("foreign_file", f"{short}: {path} is not of its records' making", path)
            else:
                found.error(
                    "projection_mismatch", f"{short}: {path} is not the fold of the logs", path
                )
    except Corrupt as error:
        found.error(error.code, f"{short}: {error.message}", oid)
    if found.report(main="", since="").error_count == before == 0:
        found.error("bad_commit", f"{short} is not laid out as the ledger lays out a commit", oid)
