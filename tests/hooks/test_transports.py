"""The same judgement over git's own transports: a daemon, and smart HTTP on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger import Ledger
from tests.hooks.conftest import Pair, git, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BACKEND = "http-backend"


class Backend(BaseHTTPRequestHandler):
    """Hands each request to `git http-backend`, as a web server does through CGI."""

    projects: str
    user: str

    def do_GET(self) -> None:
        self._serve(b"")

    def do_POST(self) -> None:
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(self._chunks())
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self._serve(body)

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _serve(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        done = subprocess.run(
            ["git", BACKEND],
            input=body,
            stdout=subprocess.PIPE,
            check=False,
            env={
                **os.environ,
                "GIT_PROJECT_ROOT": self.projects,
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "REMOTE_USER": self.user,
                "REMOTE_ADDR": "127.0.0.1",
            },
        )
        head, _, answer = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self.send_response(int(headers.pop("Status", "200 OK").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def over_http(pair: Pair) -> Iterator[str]:
    found = subprocess.run(["git", "--exec-path"], capture_output=True, text=True, check=True)
    if not (Path(found.stdout.strip()) / f"git-{BACKEND}").exists():
        pytest.skip("this git has no http-backend")
    handler = type("Handler", (Backend,), {"projects": str(pair.bare.parent), "user": "alice"})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/{pair.bare.name}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def over_daemon(pair: Pair) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    daemon = subprocess.Popen(
        [
            "git",
            "daemon",
            "--enable=receive-pack",
            "--export-all",
            "--listen=127.0.0.1",
            f"--port={port}",
            f"--base-path={pair.bare.parent}",
        ],
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_for(port, daemon)
        yield f"git://127.0.0.1:{port}/{pair.bare.name}"
    finally:
        os.killpg(daemon.pid, 15)
        daemon.communicate()


def wait_for(port: int, daemon: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        if daemon.poll() is not None:
            assert daemon.stderr is not None
            pytest.skip(f"git daemon does not run here: {daemon.stderr.read().decode()}")
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("git daemon does not answer")


@pytest.fixture(params=["over_http", "over_daemon"])
def remote(request: pytest.FixtureRequest, pair: Pair) -> str:
    if request.param == "over_http":
        git(pair.bare, "config", "http.receivepack", "true")
    url: str = request.getfixturevalue(request.param)
    git(pair.copy, "remote", "set-url", "origin", url)
    return url


def post(pair: Pair) -> None:
    with Ledger.open(pair.ledger) as ledger:
        room = ledger.room("Review")
        room.post_many([{"author": "Analyst", "body": f"more {n}"} for n in range(120)])
    pair.refresh()


def edit(pair: Pair) -> None:
    segment = pair.segment()
    segment.write_text(segment.read_text().replace("check 1", "check 9"))
    pair.commit()


def remove(pair: Pair) -> None:
    git(pair.copy, "rm", "-rq", "rooms/review")
    pair.commit()


def rewind(pair: Pair) -> None:
    git(pair.copy, "reset", "-q", "--hard", "HEAD~1")
    (pair.copy / "README.md").write_text("Another line\n")
    pair.commit()


def test_a_good_push_is_taken_and_bad_ones_are_refused(pair: Pair, remote: str) -> None:
    assert remote
    post(pair)
    done = pair.push()
    assert done.returncode == 0, done.stderr
    good = git(pair.copy, "rev-parse", "main")
    assert pair.main() == good
    bad: dict[str, Callable[[Pair], None]] = {
        "log_changed": edit,
        "room_missing": remove,
        "forced_push": rewind,
    }
    for code, change in bad.items():
        change(pair)
        done = pair.push("--force", "main")
        assert done.returncode != 0
        assert f"rooms: {code}:" in done.stderr, done.stderr
        assert pair.main() == good
        git(pair.copy, "reset", "-q", "--hard", good)
    git(pair.bare, "config", "receive.denyDeleteCurrent", "ignore")
    assert "rooms: main_deleted:" in pair.push(":main").stderr


def test_who_pushes_is_known_over_http(pair: Pair, over_http: str) -> None:
    git(pair.bare, "config", "http.receivepack", "true")
    git(pair.copy, "remote", "set-url", "origin", over_http)
    post(pair)
    table = pair.bare / "rooms-hooks.toml"
    table.write_text('[pushers]\nalice = ["ci-*"]\n')
    assert "alice may not write under" in pair.push().stderr
    table.write_text('[pushers]\nalice = ["*"]\n')
    assert pair.push().returncode == 0


def test_a_clone_of_the_hub_goes_on(pair: Pair, remote: str, tmp_path: Path) -> None:
    """Another clone writes under its own origin, and what it pushes is taken."""
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", remote, str(other))
    with Ledger.open(other) as ledger:
        ledger.room("Review").post("Reviewer", "from another machine")
    done = run(other, "push", "origin", "main")
    assert done.returncode == 0, done.stderr
    assert pair.main() == git(other, "rev-parse", "main")
