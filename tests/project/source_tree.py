"""The source files of the project and what they import, read without running them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = "agent_chatroom_ledger"
SOURCE = REPOSITORY / "src" / PACKAGE


@dataclass(frozen=True)
class Import:
    """One imported module: its absolute name, the line, and whether only types need it."""

    module: str
    line: int
    types_only: bool


def source_files() -> list[Path]:
    """Return every Python file of the package."""
    return sorted(SOURCE.rglob("*.py"))


def all_files() -> list[Path]:
    """Return every Python file that the project ships or tests with."""
    folders = [SOURCE, REPOSITORY / "tests", REPOSITORY / "examples"]
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def module_name(path: Path) -> str:
    """Return the dotted name of a source file: ``domain.names``, ``cli``, ``""`` for the root."""
    parts = list(path.relative_to(SOURCE).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def imports_of(path: Path) -> list[Import]:
    """Return every import of a file, those inside functions and type-checking blocks too."""
    package = [PACKAGE, *path.relative_to(SOURCE).parts[:-1]]
    found: list[Import] = []
    tree = parse(path)
    for_types = set(ast.walk(ast.Module(type_checking_blocks(tree), [])))
    for node in ast.walk(tree):
        types_only = node in for_types
        if isinstance(node, ast.Import):
            found += [Import(alias.name, node.lineno, types_only) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # ``from .domain import names`` names a module; ``from .errors import X`` does not.
            for alias in node.names:
                inner = SOURCE.joinpath(*module.split(".")[1:], f"{alias.name}.py")
                is_module = module.split(".")[0] == PACKAGE and inner.exists()
                name = f"{module}.{alias.name}" if is_module else module
                found.append(Import(name, node.lineno, types_only))
    return found


def type_checking_blocks(tree: ast.Module) -> list[ast.stmt]:
    """Return the statements that only a type checker reads."""
    return [
        statement
        for node in ast.walk(tree)
        if isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
        for statement in node.body
    ]


def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
