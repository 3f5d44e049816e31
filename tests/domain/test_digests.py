"""SHA-256 is what it is everywhere, and loads next to nothing."""

from __future__ import annotations

import subprocess
import sys
from hashlib import sha256

import pytest

from agent_chatroom_ledger.domain.digests import sha256_hex


@pytest.mark.parametrize("hidden", [(), ("_sha256",), ("_sha256", "_sha2")])
@pytest.mark.parametrize("data", [b"", b"review", bytes(range(256)) * 300])
def test_it_is_the_sha256_of_everybody(
    data: bytes, hidden: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in hidden:  # as in other versions of Python
        monkeypatch.setitem(sys.modules, name, None)
    assert sha256_hex(data) == sha256(data).hexdigest()


def test_it_loads_no_library() -> None:
    code = (
        "import sys; from agent_chatroom_ledger.domain.digests import sha256_hex; "
        "sha256_hex(b'review'); print('hashlib' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert found.stdout.split() == [b"False"]
