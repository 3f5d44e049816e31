"""Hooks are installed beside those of the user, again and again, and taken away."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import hookscripts
from agent_chatroom_ledger.errors import Conflict, NotFound
from tests.conftest import REPOSITORY

if TYPE_CHECKING:
    from tests.conftest import Git, MakeLedger


@pytest.fixture
def root(make_ledger: MakeLedger) -> Path:
    return Path(make_ledger().root)


def test_the_ready_hooks_are_what_is_installed() -> None:
    ready = REPOSITORY / "hooks" / "git"
    assert {path.name for path in ready.iterdir()} == set(hookscripts.ALL_HOOKS)
    for name in hookscripts.ALL_HOOKS:
        assert (ready / name).read_text(encoding="utf-8") == hookscripts.script(name)
        assert os.access(ready / name, os.X_OK)


def test_installing_twice_is_installing_once(root: Path) -> None:
    first = hookscripts.install(root, server=False, command="rooms")
    files = {path.name: path.read_bytes() for path in first.directory.iterdir()}
    assert hookscripts.install(root, server=False, command="rooms") == first
    assert {path.name: path.read_bytes() for path in first.directory.iterdir()} == files
    assert set(files) == set(hookscripts.CLONE_HOOKS)
    assert first.chained == ()


def test_a_hook_of_the_users_is_kept_and_comes_back(root: Path) -> None:
    own = root / ".git" / "hooks" / "pre-commit"
    own.write_text("#!/bin/sh\nexit 3\n")
    own.chmod(0o755)
    found = hookscripts.install(root, server=False, command="rooms")
    assert found.chained == ("pre-commit",)
    assert hookscripts.is_own(own)
    again = hookscripts.install(root, server=False, command="rooms")
    assert again.chained == ("pre-commit",)
    hookscripts.uninstall(root, server=False)
    assert own.read_text() == "#!/bin/sh\nexit 3\n"
    assert os.access(own, os.X_OK)
    assert [path.name for path in own.parent.iterdir()] == ["pre-commit"]


def test_uninstalling_what_is_not_there_changes_nothing(root: Path) -> None:
    own = root / ".git" / "hooks" / "pre-push"
    own.write_text("#!/bin/sh\n")
    assert hookscripts.uninstall(root, server=False).hooks == ()
    assert own.is_file()


def test_two_hooks_that_are_not_ours_are_not_guessed_about(root: Path) -> None:
    hookscripts.install(root, server=False, command="rooms")
    hooks = root / ".git" / "hooks"
    (hooks / "pre-push.before-rooms").write_text("#!/bin/sh\n")
    (hooks / "pre-push").write_text("#!/bin/sh\n# another tool's\n")
    with pytest.raises(Conflict, match="join the two"):
        hookscripts.install(root, server=False, command="rooms")


def test_hooks_outside_of_the_repository_are_left_alone(root: Path, git: Git) -> None:
    git(root, "config", "core.hooksPath", "/somewhere/else")
    with pytest.raises(Conflict, match=r"core\.hooksPath"):
        hookscripts.install(root, server=False, command="rooms")
    git(root, "config", "core.hooksPath", "tools/hooks")
    assert hookscripts.install(root, server=False, command="rooms").directory == (
        root / "tools" / "hooks"
    )


def test_a_directory_without_a_repository_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="git repository"):
        hookscripts.install(tmp_path, server=True, command="rooms")
    with pytest.raises(NotFound, match="root of a ledger"):
        hookscripts.install(tmp_path, server=False, command="rooms")


@pytest.mark.parametrize("name", hookscripts.ALL_HOOKS)
@pytest.mark.parametrize("status", [0, 7])
def test_the_users_hook_runs_first_with_the_same_input(
    tmp_path: Path, name: str, status: int
) -> None:
    """Both see the arguments and every byte of the input, and either can stop git."""
    hooks = tmp_path / "with space"
    hooks.mkdir()
    rooms = hooks / "it's rooms"
    log = tmp_path / "log"
    say = f'#!/bin/sh\n{{ echo "$0 $*"; cat; echo .; }} >>"{log}"\n'
    for path, text in (
        (rooms, f"{say}exit 5\n"),
        (hooks / f"{name}.before-rooms", f"{say}exit {status}\n"),
        (hooks / name, hookscripts.script(name, str(rooms))),
    ):
        path.write_text(text)
        path.chmod(0o755)
    done = subprocess.run(
        [hooks / name, "a b", "c"], input=b"one\ntwo\n\n", cwd=tmp_path, check=False
    )
    assert done.returncode == (status or 5)
    said = log.read_text()
    assert said.count(".before-rooms a b c\n") == 1
    assert said.count(f"it's rooms hook {name} a b c\n") == (0 if status else 1)
    if name in {"pre-push", "pre-receive", "post-rewrite"}:
        assert said.count("one\ntwo\n\n.\n") == (1 if status else 2)


def test_a_command_line_installs_and_answers(
    root: Path, rooms_on_path: Path, tmp_path: Path, git: Git
) -> None:
    command = [str(rooms_on_path / "rooms"), "--root", str(root), "hooks"]
    done = subprocess.run([*command, "install"], capture_output=True, text=True, check=True)
    assert "pre-commit" in done.stdout
    text = (root / ".git" / "hooks" / "pre-commit").read_text()
    assert str(rooms_on_path / "rooms") in text
    (root / "README.md").write_text("About\n")
    git(root, "add", "README.md")
    git(root, "commit", "-q", "-m", "About")
    done = subprocess.run([*command, "uninstall"], capture_output=True, text=True, check=True)
    assert "Took away: pre-commit" in done.stdout
    git(tmp_path, "init", "-q", "--bare", "hub.git")
    server = [str(rooms_on_path / "rooms"), "hooks", "install", "--server", "--json"]
    done = subprocess.run(
        server, cwd=tmp_path / "hub.git", capture_output=True, text=True, check=True
    )
    assert '"hooks":["pre-receive"]' in done.stdout
