"""Processes: who is alive and who is not, seen through the real table."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import msgspec
import psutil
import pytest

from agent_chatroom_ledger.storage import processes
from tests.clientlike import launched, running

if TYPE_CHECKING:
    from pathlib import Path


def test_a_process_is_alive_until_it_is_killed(tmp_path: Path) -> None:
    with running(tmp_path) as program:
        assert processes.is_alive(program.id)
        program.kill()
        assert not processes.is_alive(program.id)
        assert processes.identify(program.id.pid) is None


def test_a_number_that_is_used_again_is_another_process(tmp_path: Path) -> None:
    with running(tmp_path) as program:
        earlier = msgspec.structs.replace(program.id, started=program.id.started - 0.01)
        assert not processes.is_alive(earlier)


@pytest.mark.skipif(sys.platform != "linux", reason="only there a start time needs its boot")
def test_an_earlier_boot_is_gone(tmp_path: Path) -> None:
    with running(tmp_path) as program:
        assert not processes.is_alive(msgspec.structs.replace(program.id, boot="another"))


def test_a_zombie_is_not_alive(tmp_path: Path) -> None:
    with running(tmp_path) as program:
        program.process.kill()
        # The child has ended, and nobody has asked how.
        os.waitid(os.P_PID, program.id.pid, os.WEXITED | os.WNOWAIT)
        assert psutil.Process(program.id.pid).status() == psutil.STATUS_ZOMBIE
        assert not processes.is_alive(program.id)
        assert processes.identify(program.id.pid) is None


def test_a_number_that_nobody_has() -> None:
    assert processes.identify(2**22 + 7) is None


def test_a_clock_that_is_set_changes_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(tmp_path) as program:
        boot = psutil._psplatform.boot_time()
        monkeypatch.setattr(psutil._psplatform, "boot_time", lambda: boot + 3600)
        assert processes.is_alive(program.id)


@pytest.mark.parametrize("look", [1, 2, 3, 4, 5])
def test_a_clock_that_is_set_while_one_looks_changes_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look: int
) -> None:
    with running(tmp_path) as program:
        boot = psutil._psplatform.boot_time()
        looks: list[None] = []

        def moving() -> float:
            looks.append(None)
            return boot + (len(looks) >= look)

        monkeypatch.setattr(psutil._psplatform, "boot_time", moving)
        assert processes.is_alive(program.id)


def test_a_forked_child_is_a_process_of_its_own() -> None:
    me = processes.current()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - in the child
        mine = processes.current()
        os.write(write, b"other" if mine != me else b"same")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"other"
    os.close(read)
    os.close(write)
    assert processes.current() == me


def test_ancestors_are_those_that_psutil_names() -> None:
    asked = processes._asked_ancestors(os.getpid())
    read = processes.ancestors(os.getpid())
    assert [(found.id, found.words) for found in read] == [(a.id, a.words) for a in asked]
    # psutil completes a name that the system has cut.
    assert all(a.name.startswith(found.name) for found, a in zip(read, asked, strict=True))


def test_what_has_ended_has_no_ancestors() -> None:
    assert processes.ancestors(2**22 + 1) == []


def test_ancestors_lead_past_shells_to_the_client(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "from agent_chatroom_ledger.storage import processes\n"
        "line = processes.ancestors(os.getpid())\n"
        "print(processes.client_of(line).id.pid, *[a.name for a in line])"
    )
    script = f"{sys.executable} -c '{code}'; true"
    command = ["timeout", "60", "sh", "-c", 'sh -c "$1"; true', "sh", script]
    found = subprocess.run(command, capture_output=True, check=True, cwd=tmp_path)
    pid, *names = found.stdout.decode().split()
    assert int(pid) == os.getpid()
    assert "sh" in names
    assert "timeout" in names


def test_clients_of_a_directory_are_counted_whether_they_came_to_us_or_not(
    tmp_path: Path,
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (tmp_path / "link").symlink_to(here)
    with running(here, "claude") as one, running(there, "claude"), running(here, "sleeper"):
        assert processes.clients_in(str(here)) == {one.id}
        with running(tmp_path / "link", "/opt/bin/codex") as two:
            assert processes.clients_in(str(here)) == {one.id, two.id}
            two.process.kill()
            os.waitid(os.P_PID, two.id.pid, os.WEXITED | os.WNOWAIT)
            assert processes.clients_in(str(here)) == {one.id}


def test_a_launcher_and_its_client_are_one(tmp_path: Path) -> None:
    with launched(tmp_path) as program:
        (client,) = processes.clients_in(str(tmp_path))
        assert psutil.Process(client.pid).ppid() == program.id.pid


def test_a_directory_that_is_no_text_is_written_as_one(tmp_path: Path) -> None:
    odd = os.path.join(os.fsencode(tmp_path), b"\xff")  # noqa: PTH118 - bytes that are no text
    os.mkdir(odd)  # noqa: PTH102 - likewise
    assert processes.canonical(os.fsdecode(odd)) == f"{tmp_path}/\\xff"
