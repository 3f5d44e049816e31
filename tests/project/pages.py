"""The fenced blocks of the documentation pages, and running them as a reader would.

Two kinds of block are run, in the order in which the page shows them, in a directory of the page:

- ``python``: executed in that directory; names live on from block to block of the page.
- ``console``: begins where the console block before it ended. Every line that starts with ``$ ``
  (and its ``> `` continuations) is given to bash; the lines after it are what it must print.
  ``…`` stands for anything within a line, a line of its own for any number of lines; a command
  with nothing below it may print what it likes.

Any other kind of block is only shown.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.project.source_tree import REPOSITORY

SECONDS_MAX = 120


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its text, and the line on which it starts."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Command:
    """One command of a console block and the lines that it must print."""

    text: str
    expected: tuple[str, ...]


def pages() -> list[Path]:
    """Return every page that is written by hand."""
    docs = REPOSITORY / "docs"
    written = [path for path in docs.rglob("*.md") if path.parent.name != "reference"]
    return [REPOSITORY / "README.md", *sorted(written)]


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    found: list[Block] = []
    language: str | None = None
    start, lines = 0, []
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        if language is None and line.startswith("```"):
            language, start, lines = line[3:].strip(), number, []
        elif language is not None and line.startswith("```"):
            found.append(Block(language, "\n".join(lines) + "\n", start))
            language = None
        else:
            lines.append(line)
    return found


def commands_of(block: Block) -> list[Command]:
    """Split a console block into its commands and what each must print."""
    found: list[tuple[list[str], list[str]]] = []
    for line in block.text.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        elif found:
            found[-1][1].append(line)
    return [Command("\n".join(text), tuple(expected)) for text, expected in found]


def run_console(block: Block, folder: Path, environment: dict[str, str]) -> Path:
    """Run a console block in a folder, compare what it prints; return the folder it ends in."""
    commands = commands_of(block)
    marker, where = "\x1e", folder / ".ends-in"
    script = ["set -euo pipefail"]
    for command in commands:
        script += [command.text, f"printf '{marker}'"]
    script.append(f"pwd >{where}")
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == 0, f"line {block.line}: exit {done.returncode}\n{done.stdout}"
    printed = done.stdout.split(marker)
    for command, output in zip(commands, printed, strict=False):
        assert matches(command.expected, output), (
            f"line {block.line}: {command.text}\n--- documented\n"
            + "\n".join(command.expected)
            + f"\n--- printed\n{output}"
        )
    ends_in = Path(where.read_text(encoding="utf-8").strip())
    where.unlink()
    return ends_in


def matches(expected: tuple[str, ...], printed: str) -> bool:
    """Tell whether a command printed what its page shows."""
    if not expected:
        return True
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(re.escape(line.rstrip()).replace("…", r"[^\n]*?") + r"[ \t]*\n")
    text = printed if printed.endswith("\n") else printed + "\n"
    return re.fullmatch("".join(parts), text) is not None


def environment_with(commands: Path) -> dict[str, str]:
    """Return the environment of a reader who has just installed the project."""
    path = os.pathsep.join([str(commands), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100"}
