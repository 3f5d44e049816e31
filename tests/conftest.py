"""Fixtures that every test shares: an isolated environment, ledgers, and verify after each test.

A test that leaves a ledger anywhere under its ``tmp_path`` has it verified when the test is over,
however the ledger was made: through Python, through the command line or by ``git clone`` and open.
A test that breaks a ledger for good says ``@pytest.mark.broken_on_purpose``.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agent_chatroom_ledger import Ledger
    from tests.clientlike import Program

REPOSITORY = Path(__file__).resolve().parent.parent


class Git(Protocol):
    """Run the real git binary in a directory; returns what it printed, fails when git does."""

    def __call__(self, root: Path, *args: str) -> str: ...


class MakeLedger(Protocol):
    """Open (and create) a ledger under ``tmp_path``; it is closed when the test ends."""

    def __call__(self, name: str = "ledger", **options: Any) -> Ledger: ...


@pytest.fixture(scope="session", autouse=True)
def isolated_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's git configuration, name, default ledger and language out of every test."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            # A shell starts what runs in its background so; our children are to hear of Ctrl-C.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        for name in list(os.environ):
            if name.startswith(("GIT_", "ROOMS_", "PI_")):
                patch.delenv(name)
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_DATA_HOME", str(home / "data"))
        patch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        patch.setenv("GIT_TERMINAL_PROMPT", "0")
        for who in ("AUTHOR", "COMMITTER"):
            patch.setenv(f"GIT_{who}_NAME", "A Person")
            patch.setenv(f"GIT_{who}_EMAIL", "person@example.invalid")
        patch.setenv("LC_ALL", "C.UTF-8")
        # Child processes start in other directories, where a relative PYTHONPATH means nothing.
        given = os.environ.get("PYTHONPATH", "")
        if given:
            paths = [str(Path(part).resolve()) for part in given.split(os.pathsep) if part]
            patch.setenv("PYTHONPATH", os.pathsep.join(paths))
        yield


@pytest.fixture(autouse=True)
def verify_afterwards(request: pytest.FixtureRequest) -> Iterator[None]:
    """Verify every ledger that the test left under its ``tmp_path``."""
    if "tmp_path" not in request.fixturenames:
        yield
        return
    # Asked for here, so that it is torn down after this fixture and this one after all others.
    folder: Path = request.getfixturevalue("tmp_path")
    yield
    if request.node.get_closest_marker("broken_on_purpose") is None:
        for root in ledgers_below(folder):
            check_ledger(root)


def ledgers_below(folder: Path) -> list[Path]:
    """Return the roots of the ledgers below a folder that this project has opened."""
    return sorted(
        path.parent
        for path in folder.rglob("ledger.json")
        if (path.parent / ".git" / "ledger").is_dir()
    )


def check_ledger(root: Path) -> None:
    """Fail unless the ledger opens (recovering what a killed process left) and verifies clean."""
    from agent_chatroom_ledger import Ledger

    with Ledger.open(root) as ledger:
        report = ledger.verify()
    assert report.ok, f"verify found in {root}: {report.issues}"


@pytest.fixture
def make_ledger(tmp_path: Path) -> Iterator[MakeLedger]:
    """Give a factory of ledgers; each is closed when the test ends."""
    from agent_chatroom_ledger import Ledger

    opened: list[Ledger] = []

    def make(name: str = "ledger", **options: Any) -> Ledger:
        options.setdefault("create", True)
        opened.append(Ledger.open(tmp_path / name, **options))
        return opened[-1]

    yield make
    for ledger in reversed(opened):
        ledger.close()


@pytest.fixture
def ledger(make_ledger: MakeLedger) -> Ledger:
    """Give an empty ledger in sync mode."""
    return make_ledger()


@pytest.fixture
def core(tmp_path: Path) -> Path:
    """Give the directory that clients of agents work in."""
    folder = tmp_path / "core"
    folder.mkdir()
    return folder


@pytest.fixture
def one(core: Path) -> Iterator[Program]:
    """Give a running program that a test takes for a client of an agent."""
    from tests.clientlike import running

    with running(core) as program:
        yield program


@pytest.fixture
def git() -> Git:
    """Give the git binary; a test that compares with it is skipped where there is none.

    A checkpoint of the ledger may hold git's index for a moment; git is then asked again.
    """
    binary = shutil.which("git")
    if binary is None:
        pytest.skip("the git binary is the peer of this test, and there is none on PATH")

    def run(root: Path, *args: str) -> str:
        deadline = time.monotonic() + 60
        while True:
            done = subprocess.run(
                [binary, *args], cwd=root, capture_output=True, text=True, check=False
            )
            if "index.lock': File exists" not in done.stderr or time.monotonic() > deadline:
                assert done.returncode == 0, f"git {' '.join(args)}: {done.stderr}"
                return done.stdout
            time.sleep(0.02)

    return run


@pytest.fixture(scope="session")
def rooms_on_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder that holds a ``rooms`` command running this source tree's code."""
    folder = tmp_path_factory.mktemp("bin")
    command = folder / "rooms"
    command.write_text(
        f"#!{sys.executable}\nfrom agent_chatroom_ledger.cli import main\nmain()\n",
        encoding="utf-8",
    )
    command.chmod(0o755)
    return folder
