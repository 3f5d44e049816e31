"""Every dependency is declared, used, and explained in docs/dependencies.md."""

from __future__ import annotations

import re
import sys
import tomllib

from tests.project.source_tree import PACKAGE, REPOSITORY, imports_of, source_files

ROW = re.compile(r"^\| `(?P<name>[a-z0-9-]+)` \| `(?P<versions>[^`]+)` \|", re.MULTILINE)


def declared(*extras: str) -> dict[str, str]:
    """Return name and version bounds of the dependencies, with those of the extras named."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines: list[str] = [*project["dependencies"]]
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    # An extra may name another one of our own.
    return dict(split(line) for line in lines if not line.startswith(f"{project['name']}["))


def split(requirement: str) -> tuple[str, str]:
    """Split ``name>=1,<2; marker`` into its name and its bounds."""
    name, bounds = re.fullmatch(r"([A-Za-z0-9-]+)([^;]*)(?:;.*)?", requirement).groups()
    return name, bounds.strip()


def test_the_page_and_the_project_file_agree() -> None:
    page = (REPOSITORY / "docs" / "dependencies.md").read_text(encoding="utf-8")
    rows = {found["name"]: found["versions"] for found in ROW.finditer(page)}
    assert rows == declared("mcp", "dev")


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    imported = {found.module.split(".")[0] for path in source_files() for found in imports_of(path)}
    # The standard library's own from Python 3.12 on.
    foreign = imported - set(sys.stdlib_module_names) - {"_sha2", PACKAGE}
    assert foreign == set(declared("mcp"))


def test_upper_bounds_have_reasons() -> None:
    lines = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8").split("\n")
    capped = [n for n, line in enumerate(lines) if re.match(r'\s+"[a-z-]+[>=0-9.]*,<', line)]
    assert not [lines[n] for n in capped if not lines[n - 1].strip().startswith("#")]
