"""Every code that verify may report has its place in docs/operations.md."""

from __future__ import annotations

import ast
import re

from tests.project.source_tree import REPOSITORY, SOURCE, parse

REPORTING = {"error", "warning", "_Doubt"}


def codes() -> set[str]:
    """Return the first argument of each call that reports an issue."""
    # The code of a file that differs from main is put together from what it is.
    found = {"worktree_missing", "worktree_changed"}
    for path in (SOURCE / "storage").glob("verify*.py"):
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.Call) and node.args:
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                first = node.args[0]
                if name in REPORTING and isinstance(first, ast.Constant):
                    found.add(str(first.value))
    return found


def test_every_code_is_explained() -> None:
    page = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
    explained = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", page))
    assert codes()
    assert not codes() - explained
