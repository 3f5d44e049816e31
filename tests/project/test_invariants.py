"""The ten invariants: each is on the page with its code and its tests, and cited in both."""

from __future__ import annotations

import re

import pytest

from tests.project.source_tree import REPOSITORY, SOURCE, source_files

ROW = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = {
    int(number): (re.findall(r"`([^`]+)`", code), re.findall(r"`([^`]+)`", tests))
    for number, code, tests in ROW.findall(
        (REPOSITORY / "docs" / "invariants.md").read_text(encoding="utf-8")
    )
}


def cites(text: str, number: int) -> bool:
    """Tell whether a text speaks of an invariant by its number: ``invariants 3 and 5``."""
    return re.search(rf"[Ii]nvariants? (?:\d+(?:,| and) )*{number}\b", text) is not None


def test_there_are_ten() -> None:
    assert sorted(ROWS) == list(range(1, 11))


@pytest.mark.parametrize("number", range(1, 11))
def test_code_that_holds_it_exists_and_cites_it(number: int) -> None:
    code, _ = ROWS[number]
    assert not [name for name in code if not (SOURCE / name).is_file()]
    assert any(cites((SOURCE / name).read_text(encoding="utf-8"), number) for name in code)


@pytest.mark.parametrize("number", range(1, 11))
def test_tests_that_hold_it_exist_and_cite_it(number: int) -> None:
    _, tests = ROWS[number]
    assert tests
    paths = [REPOSITORY / "tests" / name for name in tests]
    assert not [path for path in paths if not path.is_file()]
    assert any(cites(path.read_text(encoding="utf-8"), number) for path in paths)


def test_no_other_number_is_cited() -> None:
    cited = {
        int(number)
        for path in source_files()
        for number in re.findall(r"\binvariants? (\d+)", path.read_text(encoding="utf-8"))
    }
    assert cited <= set(ROWS)
