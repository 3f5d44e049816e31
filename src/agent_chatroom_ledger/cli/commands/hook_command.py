"""`rooms hook`: what git's hooks call."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.failures import FAILURE
from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.session import Session
from agent_chatroom_ledger.cli.terminal import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.hookcheck import Surroundings
    from agent_chatroom_ledger.storage.issues import Report

NAMES = (
    "pre-commit",
    "post-merge",
    "post-checkout",
    "post-rewrite",
    "pre-push",
    "pre-receive",
    "update",
)
_REFRESHING = frozenset({"post-merge", "post-checkout", "post-rewrite"})
_ISSUES_SHOWN = 20
_WAYS_OUT = {
    "pre-commit": (
        "`git restore --staged --worktree -- PATH` puts a file back as it was; rooms are changed "
        "with `rooms post`, `rooms policy` and so on."
    ),
    "post": "`rooms verify` says more, `rooms verify --repair` plans to mend it.",
    "push": "`rooms verify` says more; commits that a server has once refused stay refused.",
}


@click.command("hook", context_settings={"ignore_unknown_options": True})
@click.argument("name", metavar="NAME", type=click.Choice(NAMES))
@click.argument("args", metavar="[ARGS]...", nargs=-1, type=click.UNPROCESSED)
@common
@click.pass_context
def command(ctx: click.Context, name: str, args: tuple[str, ...]) -> None:
    """Do what one of git's hooks is for; `rooms hooks install` lets git call this.

    NAME is pre-commit, post-merge, post-checkout, post-rewrite or pre-push in a clone, pre-receive
    or update on a server. ARGS, standard input and environment are as git gives them. Says nothing
    when all is well; exits with 1, naming what is wrong and how to mend it, when git has to stop.

    `rooms hook agent` is what agents' clients call (docs/agent-hooks.md); it always exits with 0.
    """
    session = ctx.ensure_object(Session)
    around = _surroundings(session.root_option)
    done: list[str] = []
    report: Report | None
    if name in _REFRESHING:
        from agent_chatroom_ledger import hookcheck

        done, report = hookcheck.refresh(around, name)
    else:
        report = _judged(session, around, name, args)
    document = {
        "hook": name,
        "ok": report is None or report.ok,
        "done": done,
        "issues": [] if report is None else [issue.as_dict() for issue in report.issues],
        "counts": {} if report is None else dict(report.counts),
    }
    if session.json:
        session.show(document, ())
    else:
        for line in _lines(name, document):
            session.say(line)
    if not document["ok"]:
        ctx.exit(FAILURE)


def _judged(session: Session, around: Surroundings, name: str, args: tuple[str, ...]) -> Report:
    """Ask whether git may go on."""
    from agent_chatroom_ledger import hookcheck

    def progress(done: int, of: int) -> None:
        if not session.json:
            session.say(f"rooms: {done:,} of {of:,} commits checked")

    if name == "pre-commit":
        return hookcheck.commit(around)
    if name == "update":
        if len(args) != 3:
            raise click.UsageError("update needs a ref, its old and its new commit.")
        return hookcheck.receive(around, [hookcheck.RefUpdate(*args)], progress)
    said = sys.stdin.buffer.read().decode("utf-8", "surrogateescape").split("\n")
    if name == "pre-push":
        return hookcheck.push(around, hookcheck.ref_updates(said, pushing=True), progress)
    return hookcheck.receive(around, hookcheck.ref_updates(said), progress)


def _surroundings(root: str | None) -> Surroundings:
    """Gather what git tells its hooks by the environment and the directory they start in."""
    from datetime import UTC, datetime

    from agent_chatroom_ledger.hookcheck import Surroundings

    here = Path(root).absolute() if root else Path.cwd()
    named = os.environ.get("GIT_DIR")
    if named and not root:
        git = here / named
    else:
        git = here / ".git" if (here / ".git").is_dir() else here
    objects = []
    if own := os.environ.get("GIT_OBJECT_DIRECTORY"):
        objects = [own, *_paths(os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", ""))]
        objects.append(str(git / "objects"))
    index = os.environ.get("GIT_INDEX_FILE")
    return Surroundings(
        git=git.resolve(),
        now=datetime.now(UTC),
        objects=tuple(dict.fromkeys(str((here / place).absolute()) for place in objects)),
        index=here / index if index else None,
        variables=os.environ,
    )


def _paths(text: str) -> Iterator[str]:
    """Give the directories of a list as git writes it; one with odd characters stands in quotes."""
    rest = text
    while rest:
        if rest.startswith('"'):
            end = 1
            while end < len(rest) and rest[end] != '"':
                end += 2 if rest[end] == "\\" else 1
            yield _unquoted(rest[1:end])
            rest = rest[end + 1 :].removeprefix(os.pathsep)
        else:
            path, _, rest = rest.partition(os.pathsep)
            if path:
                yield path


def _unquoted(text: str) -> str:
    """Undo git's quoting of a path, which is that of C."""
    import codecs

    # Of the codecs that know C's escapes, the one that leaves other bytes alone.
    data, _ = codecs.escape_decode(text.encode("utf-8", "surrogateescape"))
    return os.fsdecode(data)


def _lines(name: str, document: dict[str, Any]) -> Iterator[str]:
    for step in document["done"]:
        yield f"rooms: {plain(step)}"
    if document["ok"]:
        return
    wrong = [issue for issue in document["issues"] if issue["severity"] == "error"]
    for issue in wrong[:_ISSUES_SHOWN]:
        yield f"rooms: {plain(issue['code'])}: {plain(issue['message'])}"
    if len(wrong) > _ISSUES_SHOWN:
        yield f"rooms: and {len(wrong) - _ISSUES_SHOWN} more"
    what = "post" if name in _REFRESHING else "pre-commit" if name == "pre-commit" else "push"
    yield f"rooms: {_WAYS_OUT[what]}"
