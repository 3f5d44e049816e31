"""The real clients, installed from npm once, each at the version that was looked at."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

CLAUDE: Final = "@anthropic-ai/claude-code"
CODEX: Final = "@openai/codex"
GEMINI: Final = "@google/gemini-cli"
INSPECTOR: Final = "@modelcontextprotocol/inspector"
INSTALL_SECONDS_MAX: Final = 900
# Names another directory than one below that for temporary files.
CACHE_VARIABLE: Final = "CLIENTS_NPM_CACHE"


def program(package: str, version: str, name: str) -> Path:
    """Return a program of an npm package, installing it first; skips where that cannot be."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.skip("npm and node are what the real clients come with, and there are none on PATH")
    root = Path(os.environ.get(CACHE_VARIABLE) or Path(tempfile.gettempdir()) / "rooms-test-npm")
    folder = root / f"{package.rpartition('/')[2]}-{version}"
    binary = folder / "node_modules" / ".bin" / name
    if not binary.exists():
        _install(npm, f"{package}@{version}", folder)
    return binary


def _install(npm: str, what: str, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=".installing-", dir=folder.parent))
    try:
        done = subprocess.run(
            [npm, "install", "--prefix", str(fresh), "--no-audit", "--no-fund", what],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS_MAX,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"npm cannot install {what}: {done.stderr[-400:]}")
        if not folder.exists():
            fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
