"""One run of the command line: its options, its ledger, and where its output goes."""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agent_chatroom_ledger.cli import output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_chatroom_ledger.cli.root import Root
    from agent_chatroom_ledger.cli.terminal import Paint
    from agent_chatroom_ledger.ledger import Ledger


class Session:
    """What the commands share: options given before or after a command's name end up here.

    `arguments` are those of this run, so that a plan can say how to apply it.
    """

    def __init__(self, program: str, arguments: tuple[str, ...]) -> None:
        self.program = program
        self.arguments = arguments
        self.root_option: str | None = None
        # A usage error may come before the option is read, and must be JSON all the same.
        self.json = "--json" in _before_separator(arguments)
        self.debug = "--debug" in _before_separator(arguments)

    @property
    def paint(self) -> Paint:
        """The colours of stdout: none unless it is a terminal."""
        from agent_chatroom_ledger.cli.terminal import Paint

        return Paint.of(sys.stdout)

    def root(self) -> Root:
        """Find the root that this run is about; it may not hold a ledger."""
        from agent_chatroom_ledger.cli.root import find

        return find(self.root_option, os.environ, Path.cwd())

    def read(self) -> Ledger:
        """Open the ledger for reading; nothing is recovered, and only derived files are written."""
        ledger = self._open(read_only=True)
        ledger.keep_index()
        return ledger

    def write(self, *, create: bool = False, commit: Literal["sync", "group"] = "sync") -> Ledger:
        """Open the ledger for writing; `commit` is that of `Ledger.open`.

        With `create`, the user's own ledger is made when nothing else was named and it is not
        there yet; a directory that was named is never turned into a ledger.
        """
        return self._open(read_only=False, create=create, commit=commit)

    def _open(
        self, *, read_only: bool, create: bool = False, commit: Literal["sync", "group"] = "sync"
    ) -> Ledger:
        root = self.root()
        fresh = not root.exists
        if fresh and not (create and root.source == "default"):
            from agent_chatroom_ledger.cli.root import missing

            raise missing(root)
        from agent_chatroom_ledger.ledger import Ledger

        if fresh:
            self.say(f"Your own ledger begins at {root.path}")
        gc.enable()
        return Ledger.open(root.path, create=fresh, commit=commit, read_only=read_only)

    def show(self, document: dict[str, Any], lines: Iterable[str]) -> None:
        """Write a command's result to stdout: the document with `--json`, else the lines."""
        if self.json:
            output.write_json(document)
        else:
            output.write_lines(lines)

    def say(self, text: str) -> None:
        """Tell the user something that is not data, on stderr."""
        with suppress(BrokenPipeError):
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def applied_command(self) -> str:
        """Return this same command line with `--apply`, ready to be pasted."""
        import shlex

        words = [word for word in _before_separator(self.arguments) if word != "--apply"]
        rest = self.arguments[len(_before_separator(self.arguments)) :]
        return shlex.join([self.program, *words, "--apply", *rest])


def _before_separator(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Return the arguments up to a bare `--`, after which nothing is an option."""
    if "--" in arguments:
        return arguments[: arguments.index("--")]
    return arguments
