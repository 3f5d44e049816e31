"""The documentation: examples run, links lead somewhere, generated pages are current."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.project import reference
from tests.project.pages import Block, blocks_of, environment_with, matches, pages, run_console
from tests.project.source_tree import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
# The two commands by which the README promises that everything starts.
START = "python -m pip install . && rooms demo"
TEST = "python -m pip install -e '.[dev]' && python -m pytest"


def page_id(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_examples_run(
    page: Path, tmp_path: Path, rooms_on_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = list(runnable(page))
    if any("$ git " in block.text for block in blocks) and shutil.which("git") is None:
        pytest.skip("the page shows plain git on a ledger, and there is none on PATH")
    folder, names = tmp_path, {"__name__": "__main__"}
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        if block.language == "python":
            # The line numbers of a traceback are those of the page.
            source = "\n" * block.line + block.text
            exec(compile(source, str(page), "exec"), names)  # noqa: S102 - our own page
        else:
            folder = run_console(block, folder, environment_with(rooms_on_path))


def runnable(page: Path) -> Iterator[Block]:
    yield from (block for block in blocks_of(page) if block.language in {"python", "console"})


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [found.group(1) for found in LINK.finditer(text)]
    local = [target for target in targets if not target.startswith(("http:", "https:"))]
    assert not [target for target in local if not (page.parent / target).exists()]


@pytest.mark.parametrize("name", reference.PAGES)
def test_generated_pages_are_current(name: str) -> None:
    committed = (REPOSITORY / "docs" / "reference" / name).read_text(encoding="utf-8")
    assert committed == reference.render(name), f"run: {reference.COMMAND}"


def test_readme_starts_with_the_two_commands_that_ci_runs() -> None:
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert START in readme
    assert TEST in readme
    script = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    assert "python -m pip install -q -e '.[dev]'" in script
    assert "\npython -m pytest\n" in script
    assert "smoke rooms demo" in script


def test_every_page_is_reachable_from_the_index() -> None:
    index = (REPOSITORY / "docs" / "index.md").read_text(encoding="utf-8")
    named = {found.group(1) for found in LINK.finditer(index)}
    docs = REPOSITORY / "docs"
    there = {str(path.relative_to(docs)) for path in docs.rglob("*.md")} - {"index.md"}
    assert there == {target for target in named if target.endswith(".md")} - {"../README.md"}


@pytest.mark.parametrize(
    ("expected", "printed", "verdict"),
    [
        ((), "anything\n", True),
        (("a … c",), "a b c\n", True),
        (("a", "…", "z"), "a\nb\nc\nz\n", True),
        (("a",), "a\nb\n", False),
        (("a+",), "aa\n", False),
    ],
)
def test_documented_output_is_compared(
    expected: tuple[str, ...], printed: str, *, verdict: bool
) -> None:
    assert matches(expected, printed) is verdict
