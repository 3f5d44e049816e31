"""Arrows point down only (docs/design.md 10): doors, then use cases, then storage, then domain."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.project.source_tree import PACKAGE, imports_of, module_name, parse, source_files

if TYPE_CHECKING:
    from pathlib import Path

# A module may import from its own layer and from those below it.
LAYERS = {
    "errors": 0,
    "limits": 0,
    "domain": 1,
    "storage": 2,
    "ledger": 3,
    "room": 3,
    "consumers": 3,
    "agents": 3,
    "archives": 3,
    "changes": 3,
    "creation": 3,
    "direct": 3,
    "exporting": 3,
    "following": 3,
    "hookcheck": 3,
    "hookscripts": 3,
    "inbox": 3,
    "identity": 3,
    "presence": 3,
    "pinning": 3,
    "joining": 3,
    "listing": 3,
    "lookup": 3,
    "members": 3,
    "operations": 3,
    "placement": 3,
    "places": 3,
    "posting": 3,
    "queuewalk": 3,
    "receipts": 3,
    "operationlog": 3,
    "restoring": 3,
    "sending": 3,
    "differences": 3,
    "past": 3,
    "trail": 3,
    "plans": 3,
    "versions": 3,
    "waiting": 3,
    "preparations": 3,
    "consumerlens": 3,
    "upkeep": 3,
    "tokens": 3,
    "": 3,  # The package itself: the public face, made of the use cases.
    "nudges": 3,
    "roots": 3,
    "quiet": 3,
    "cli": 4,
    "agenthook": 4,
    "adapters": 4,
    "clients": 4,
    "service": 4,
    "mcp": 4,
}
DOORS = 4

# NotYetCommitted carries records; errors.py names their type and imports nothing at run time.
TYPES_ONLY = {("errors", "domain.records")}

# What the pure layer may use: nothing here reads a file, a clock, the environment or randomness.
PURE_MODULES = {
    "__future__",
    "_sha2",
    "_sha256",
    "base64",
    "binascii",
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "json",
    "math",
    "msgspec",
    "operator",
    "re",
    "string",
    "struct",
    "types",
    "typing",
    "unicodedata",
    "zlib",
}
IMPURE_CALLS = {"open", "input", "print", "exec", "eval"}
IMPURE_METHODS = {"now", "utcnow", "today", "getenv", "urandom", "uuid1", "uuid4"}

# What only entry points may read (house rule 3). Two of them are not in cli/: the child process
# that makes the commits of group mode, which hands its environment on and reads its arguments. The
# other is the agent hook, which is started before the command line is.
ENTRY_POINTS = {"cli", "storage.background", "agenthook.process"}
AMBIENT = {"environ", "getenv", "argv", "stdin", "stdout", "stderr", "getcwd", "cwd"}


def part_of(module: str) -> str:
    """Return the layer's name: the first part below the package."""
    return module.split(".", 1)[0]


def own(module: str) -> str | None:
    """Return an imported module's name below our package, or None when it is another's."""
    if module == PACKAGE:
        return ""
    return module.removeprefix(f"{PACKAGE}.") if module.startswith(f"{PACKAGE}.") else None


@pytest.fixture(params=source_files(), ids=lambda path: module_name(path) or PACKAGE)
def source(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_every_module_has_a_layer(source: Path) -> None:
    assert part_of(module_name(source)) in LAYERS


def test_arrows_point_down(source: Path) -> None:
    name = module_name(source)
    upward = [
        f"line {found.line}: {found.module}"
        for found in imports_of(source)
        if (inner := own(found.module)) is not None
        and LAYERS[part_of(inner)] > LAYERS[part_of(name)]
        and (name, inner) not in TYPES_ONLY
    ]
    assert not upward


def test_only_storage_imports_dulwich(source: Path) -> None:
    if part_of(module_name(source)) != "storage":
        assert not [f for f in imports_of(source) if f.module.split(".")[0] == "dulwich"]


def test_only_the_mcp_server_imports_its_sdk(source: Path) -> None:
    if part_of(module_name(source)) != "mcp":
        sdk = {"mcp", "anyio", "uvicorn"}
        assert not [f for f in imports_of(source) if f.module.split(".")[0] in sdk]


def test_doors_do_not_reach_into_storage(source: Path) -> None:
    if LAYERS[part_of(module_name(source))] == DOORS:
        # The types of what use cases return may be named.
        used = [found for found in imports_of(source) if not found.types_only]
        assert not [f for f in used if (own(f.module) or "").startswith("storage")]


def test_domain_is_pure(source: Path) -> None:
    if part_of(module_name(source)) not in {"domain", "errors", "limits"}:
        return
    foreign = [f for f in imports_of(source) if own(f.module) is None]
    assert not [f for f in foreign if f.module not in PURE_MODULES]
    calls = [node for node in ast.walk(parse(source)) if isinstance(node, ast.Call)]
    impure = [
        f"line {call.lineno}"
        for call in calls
        if (isinstance(call.func, ast.Name) and call.func.id in IMPURE_CALLS)
        or (isinstance(call.func, ast.Attribute) and call.func.attr in IMPURE_METHODS)
    ]
    assert not impure


def test_only_entry_points_read_the_environment(source: Path) -> None:
    name = module_name(source)
    if {name, part_of(name)} & ENTRY_POINTS:
        return
    found = [
        f"line {node.lineno}: {node.value.id}.{node.attr}"
        for node in ast.walk(parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in {"os", "sys", "Path", "pathlib"}
        and node.attr in AMBIENT
    ]
    assert not found
