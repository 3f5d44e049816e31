"""The house style that no linter measures: sizes, names, and nothing left for later."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from tests.project.source_tree import REPOSITORY, all_files, parse, source_files

if TYPE_CHECKING:
    from pathlib import Path

MODULE_LINES_MAX = 450
FUNCTION_LINES_MAX = 80
LINE_CHARS_MAX = 100
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}
# Written with brackets, so that this file passes its own test.
LEFT_FOR_LATER = re.compile(r"\b(TO[D]O|FI[X]ME|X[X]X|for[ ]now|place[h]older)\b")


@pytest.fixture(params=all_files(), ids=lambda path: str(path.relative_to(REPOSITORY)))
def path(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


def test_module_is_short_enough_to_read(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MODULE_LINES_MAX


def test_lines_fit(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # As the linter counts: the reason of an exception may stand beyond the edge.
    lines = re.sub(r"  # (?:no[q]a|type): .*", "", text).split("\n")
    assert not [n for n, line in enumerate(lines, 1) if len(line) > LINE_CHARS_MAX]


def test_functions_fit_a_screen(path: Path) -> None:
    long = [
        f"{node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for node in ast.walk(parse(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert not long


def test_nothing_is_left_for_later(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    assert not [f"line {n}" for n, line in enumerate(lines, 1) if LEFT_FOR_LATER.search(line)]


def test_every_exception_to_a_rule_names_the_rule_and_its_reason(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    marks = [
        f"line {n}: {line.strip()}"
        for n, line in enumerate(lines, 1)
        if re.search("# (no[q]a|type: ig[n]ore)", line)
        and not re.search(r"# (no[q]a: [A-Z0-9, ]+|type: ig[n]ore\[[a-z-, ]+\])\W+\w+", line)
    ]
    assert not marks


def test_modules_are_named_by_their_noun() -> None:
    assert not [path for path in all_files() if path.stem.lower() in EMPTY_NAMES]


def test_every_module_says_what_it_is() -> None:
    silent = [path.name for path in source_files() if not ast.get_docstring(parse(path))]
    assert not silent
