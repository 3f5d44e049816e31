"""What `codex app-server` says of hooks: the only one who knows whether Codex trusts them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECONDS_MAX: Final = 15
_LINES_MAX: Final = 200


def listed_hooks(
    binary: str, environment: Mapping[str, str], directory: Path
) -> list[dict[str, Any]] | None:
    """Return the hooks that Codex would run in a directory; None when it does not answer in time.

    Each has ``command``, ``key``, ``enabled``, ``currentHash`` and ``trustStatus``: trusted,
    untrusted, modified or managed.
    """
    try:
        server = subprocess.Popen(  # noqa: S603 - the user's own client, found on PATH
            [binary, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environment),
            cwd=directory,
            start_new_session=True,  # a launcher's child is to end with it
        )
    except OSError:
        return None
    alarm = threading.Timer(SECONDS_MAX, _kill, (server,))
    alarm.start()
    try:
        return _asked(server, directory)
    except (OSError, ValueError):
        return None
    finally:
        alarm.cancel()
        _kill(server)
        server.communicate()


def _kill(server: subprocess.Popen[bytes]) -> None:
    """End the server and what it has started: a launcher's child holds the pipes as well."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
    else:
        server.kill()


def _asked(server: subprocess.Popen[bytes], directory: Path) -> list[dict[str, Any]] | None:
    client = {"name": "rooms", "title": None, "version": "0"}
    if _call(server, 1, "initialize", {"clientInfo": client}) is None:
        return None
    _send(server, {"method": "initialized"})
    answer = _call(server, 2, "hooks/list", {"cwds": [str(directory)]})
    layers = answer.get("data") if answer is not None else None
    if not isinstance(layers, list):
        return None
    hooks: list[dict[str, Any]] = []
    for layer in layers:
        found = layer.get("hooks") if isinstance(layer, dict) else None
        hooks += [hook for hook in found or () if isinstance(hook, dict)]
    return hooks


def _call(
    server: subprocess.Popen[bytes], number: int, method: str, params: dict[str, Any]
) -> dict[str, Any] | None:
    _send(server, {"id": number, "method": method, "params": params})
    assert server.stdout is not None
    for _ in range(_LINES_MAX):
        line = server.stdout.readline()
        if not line:
            return None
        message = json.loads(line)
        if isinstance(message, dict) and message.get("id") == number:
            result = message.get("result")
            return result if isinstance(result, dict) else None
    return None


def _send(server: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()
