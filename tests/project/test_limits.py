"""Invariant 9: everything has a limit; each stands in limits.py, is used, and is documented."""

from __future__ import annotations

import re

import pytest

from tests.project.reference import limits
from tests.project.source_tree import REPOSITORY, SOURCE, source_files

USED = "\n".join(
    path.read_text(encoding="utf-8") for path in source_files() if path != SOURCE / "limits.py"
)


@pytest.mark.parametrize("name", [limit.name for limit in limits()])
def test_limit_is_used(name: str) -> None:
    assert re.search(rf"\b{name}\b", USED)


@pytest.mark.parametrize("name", [limit.name for limit in limits()])
def test_limit_is_documented(name: str) -> None:
    page = (REPOSITORY / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page


def test_limits_name_their_sense_or_unit_last() -> None:
    last = ("MAX", "MIN", "BYTES", "CHARS", "SECONDS", "RECORDS", "FRAMES")
    assert not [limit.name for limit in limits() if not limit.name.endswith(last)]
