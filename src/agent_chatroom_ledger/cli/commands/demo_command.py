"""`rooms demo`: the main job on embedded data, in a ledger that stays for the user."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agent_chatroom_ledger.cli.options import common
from agent_chatroom_ledger.cli.output import path_text
from agent_chatroom_ledger.cli.terminal import plain
from agent_chatroom_ledger.errors import Conflict
from agent_chatroom_ledger.roots import named_root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger.cli.session import Session
    from agent_chatroom_ledger.cli.terminal import Paint


@click.command("demo")
@common
@click.pass_obj
def command(session: Session) -> None:
    """Show the main job on embedded data.

    Two readers diverge, one restarts, a message is left out, the compiled view is broken on
    purpose and rebuilt, verification is clean, and the room's history is shown. The ledger is made
    in --root DIR, which must be new or empty, or else in a fresh temporary directory; it stays.
    """
    from agent_chatroom_ledger.cli.story import tell

    root = _fresh(session.root_option)
    steps = tell(root)
    shown = path_text(root)
    following = [
        _pasted(session.program, shown, *words)
        for words in (
            ("read", "design-review"),
            ("unread", "--as", "Reviewer"),
            ("log", "design-review"),
        )
    ]
    document = {
        "root": shown,
        "steps": [{"title": step.title, "lines": list(step.lines)} for step in steps],
        "next": following,
    }
    session.show(document, _lines(document, session.paint))


def _fresh(named: str | None) -> Path:
    """Return a new or empty directory; ROOMS_ROOT is not asked, a demo is not for a real ledger."""
    if named is None:
        import tempfile

        return Path(tempfile.mkdtemp(prefix="rooms-demo-"))
    path = named_root(named)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise Conflict(
            f"{path_text(path)} is not empty; the demo wants a new or empty directory.",
            root=path_text(path),
        )
    return path


def _pasted(program: str, root: str, *words: str) -> str:
    import shlex

    return shlex.join([program, "--root", root, *words])


def _lines(document: dict[str, Any], paint: Paint) -> Iterator[str]:
    for number, step in enumerate(document["steps"], 1):
        yield paint.strong(f"{number}. {step['title']}")
        yield from (f"   {line}" for line in step["lines"])
        yield ""
    yield f"{paint.good('Done.')} The ledger is at {plain(document['root'])}"
    yield "Try next:"
    yield from (f"  {plain(line)}" for line in document["next"])
