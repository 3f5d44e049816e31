"""The generated pages of docs/reference, made from the code.

Write them with ``python -m tests.project.reference``; a test compares them with what is committed.
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from tests.project.source_tree import PACKAGE, REPOSITORY, SOURCE, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = ("cli.md", "python.md", "errors.md", "limits.md")
COMMAND = "python -m tests.project.reference"
NOTE = f"<!-- Made from the code by `{COMMAND}`; do not edit. -->"
# What the reference of the Python interface shows beyond the names that the package exports.
FURTHER = (
    ("sending", "Sent"),
    ("sending", "Recipient"),
    ("joining", "Created"),
    ("joining", "Joined"),
    ("joining", "Left"),
    ("inbox", "Item"),
    ("inbox", "Handover"),
    ("receipts", "Receipts"),
    ("receipts", "Receipt"),
    ("receipts", "Answer"),
    ("service", "ChatroomService"),
)
# Methods that other layers of the package use, and no caller needs.
INSIDE = {
    "Consumer.was_given",
    "Ledger.index",
    "Ledger.layout",
    "Ledger.look",
    "Ledger.objects",
    "Ledger.receipts",
    "Ledger.source_at",
    "Ledger.timeline",
    "Ledger.transact",
    "Ledger.writer",
    "Room.reader",
    "Room.require_active",
}
SIGNATURE_CHARS_MAX = 96


@dataclass(frozen=True)
class Limit:
    """One limit: its name, its value, the heading it stands under, and its own comment."""

    name: str
    value: int
    heading: str
    comment: str


def limits() -> list[Limit]:
    """Return every limit in limits.py with its comments, in order."""
    path = SOURCE / "limits.py"
    values = vars(import_module(f"{PACKAGE}.limits"))
    found: list[Limit] = []
    heading, comments = "", [""]
    opening = True
    for line in path.read_text(encoding="utf-8").split("\n"):
        if not line:
            opening, comments = True, []
        elif line.startswith("# "):
            comments.append(line[2:])
        elif name := re.match(r"([A-Z][A-Z0-9_]+)\b.*=", line):
            if opening:
                heading, comments, opening = comments[0], comments[1:], False
            value = values[name.group(1)]
            found.append(
                Limit(name.group(1), value, heading, " ".join(comments).replace("``", "`"))
            )
            comments = []
    return found


def render(page: str) -> str:
    """Return the text of one generated page."""
    if page == "cli.md":
        return cli_page()
    return {"python.md": python_page, "errors.md": errors_page, "limits.md": limits_page}[page]()


def cli_page() -> str:
    """Return the reference of the command line, which the command line writes itself."""
    done = subprocess.run(
        [sys.executable, "-m", f"{PACKAGE}.cli.reference"],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def limits_page() -> str:
    """Return the table of limits, under the headings of limits.py."""
    lines = [NOTE, "", "# Limits", ""]
    lines += [
        "Everything has a limit (invariant 9). Exceeding one is an error that names it, never a",
        "truncation. They stand in `agent_chatroom_ledger.limits`.",
    ]
    heading = ""
    for limit in limits():
        if limit.heading != heading:
            heading = limit.heading
            lines += ["", f"## {heading.rstrip('.')}", ""]
            lines += ["| limit | value | note |", "|---|---:|---|"]
        lines.append(f"| `{limit.name}` | {limit.value:,} | {limit.comment} |")
    return "\n".join(lines) + "\n"


def errors_page() -> str:
    """Return the table of errors: code, class, exit status, and who has to act."""
    module = import_module(f"{PACKAGE}.errors")
    root = module.LedgerError
    lines = [NOTE, "", "# Errors", "", prose(root), ""]
    lines += [
        "The command line prints one as a sentence, or with `--json` as",
        '`{"error": {"code": …, "message": …, "fields": {…}}}`, and ends with its exit status.',
        "",
        "| code | class | exit status | also a | meaning |",
        "|---|---|---:|---|---|",
    ]
    for name, error in classes_of(module):
        builtin = [
            f"`{base.__name__}`"
            for base in error.__bases__
            if base.__module__ == "builtins" and error is not root
        ]
        meaning = " ".join((inspect.getdoc(error) or "").split("\n\n")[0].split())
        row = (f"`{error.code}`", f"`{name}`", str(error.exit_status), ", ".join(builtin), meaning)
        lines.append("| " + " | ".join(row) + " |")
    lines += [
        "",
        "Exit statuses without a class: 0, done; 1, also when verify found errors; 2, the command",
        "line itself was wrong (an unknown option, a missing argument).",
    ]
    return "\n".join(lines) + "\n"


def python_page() -> str:
    """Return the reference of the public Python names, from their docstrings."""
    package = import_module(PACKAGE)
    names = [(PACKAGE, name) for name in package.__all__ if not name.startswith("__")]
    names += [(f"{PACKAGE}.{module}", name) for module, name in FURTHER]
    lines = [NOTE, "", "# Python reference", ""]
    lines += [
        "The errors have a page of their own: [errors.md](errors.md). A guide with examples is",
        "[python.md](../python.md).",
    ]
    for module, name in names:
        value = getattr(import_module(module), name)
        if isinstance(value, type) and issubclass(value, Exception):
            continue
        lines += ["", f"## {name}", "", f"`from {module} import {name}`", "", prose(value)]
        if isinstance(value, type):
            lines += class_lines(value)
    return "\n".join(lines) + "\n"


def class_lines(value: type) -> list[str]:
    """Return the lines of a class: its fields, its properties and its methods."""
    fields = [
        f"    {name}: {kind}"
        for name, kind in inspect.get_annotations(value).items()
        if not name.startswith("_")
    ]
    lines = ["", "```text", *fields, "```"] if fields else []
    parts = [part for part in value.__mro__ if part.__module__.startswith(PACKAGE)]
    members = [pair for part in parts for pair in vars(part).items()]
    for name, member in members:
        called = f"{value.__name__}.{name}"
        if name.startswith("_") or called in INSIDE or not is_shown(member):
            continue
        if isinstance(member, property):
            lines += ["", f"### {called}", "", prose(member)]
        else:
            function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            lines += ["", f"### {called}", "", "```text"]
            lines += [*signature_lines(name, function), "```", "", prose(function)]
    return lines


def is_shown(member: object) -> bool:
    """Tell whether a member of a class is a property or a method."""
    return isinstance(member, property | classmethod | staticmethod) or inspect.isfunction(member)


def signature_lines(name: str, function: object) -> list[str]:
    """Return a call's signature, on one line where it fits, else one parameter a line."""
    signature = inspect.signature(function)  # type: ignore[arg-type] # Always a function here.
    parameters = [p for p in signature.parameters.values() if p.name not in {"self", "cls"}]
    shown = [parameter_text(parameter) for parameter in parameters]
    kinds = [parameter.kind for parameter in parameters]
    if inspect.Parameter.KEYWORD_ONLY in kinds:
        shown.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
    answer = f" -> {signature.return_annotation}"
    one = f"{name}({', '.join(shown)}){answer}"
    if len(one) <= SIGNATURE_CHARS_MAX:
        return [one]
    return [f"{name}(", *[f"    {text}," for text in shown], f"){answer}"]


def parameter_text(parameter: inspect.Parameter) -> str:
    """Return a parameter as its source has it."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    text = f"{stars.get(parameter.kind, '')}{parameter.name}: {parameter.annotation}"
    if parameter.default is inspect.Parameter.empty:
        return text
    return f"{text} = {parameter.default!r}"


def prose(value: object) -> str:
    """Return a docstring as Markdown, its double backquotes made single."""
    return (inspect.getdoc(value) or "").replace("``", "`").strip()


def classes_of(module: object) -> Iterator[tuple[str, type]]:
    """Yield the classes that a module defines, in the order of its source."""
    path = SOURCE / "errors.py"
    for node in parse(path).body:
        if isinstance(node, ast.ClassDef):
            yield node.name, getattr(module, node.name)


def main() -> None:
    """Write every generated page."""
    folder = REPOSITORY / "docs" / "reference"
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        (folder / page).write_text(render(page), encoding="utf-8")


if __name__ == "__main__":
    main()
