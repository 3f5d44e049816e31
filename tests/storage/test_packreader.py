"""The fast reader of packs: the same objects as the careful one, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from agent_chatroom_ledger.storage import packreader
from agent_chatroom_ledger.storage.packreader import PackReader

if TYPE_CHECKING:
    from agent_chatroom_ledger import Ledger
    from tests.conftest import Git


@pytest.fixture
def filled(ledger: Ledger) -> Ledger:
    """Give a ledger with enough commits for packs of every kind of ours."""
    room = ledger.create_room("Here")
    room.post_many([{"author": "Ann", "body": f"{n} " + "word " * (n % 50)} for n in range(300)])
    for number in range(40):
        room.post("Ben", str(number))
    ledger.flush()
    return ledger


def _ids(ledger: Ledger, git: Git) -> list[str]:
    lines = git(ledger.root, "cat-file", "--batch-all-objects", "--batch-check").splitlines()
    return [line.split()[0] for line in lines]


def _same(ledger: Ledger, git: Git) -> int:
    """Compare every object, newest and oldest first; return how many were found."""
    reader = PackReader(ledger.layout)
    found = 0
    ids = _ids(ledger, git)
    for oid in [*ids, *reversed(ids)]:
        got = reader.get(oid)
        if got is not None:
            assert got == ledger.objects.get(oid)
            found += 1
    reader.close()
    return found


def test_our_packs(filled: Ledger, git: Git) -> None:
    assert _same(filled, git) == 2 * len(_ids(filled, git))


def test_packs_of_git(filled: Ledger, git: Git) -> None:
    git(filled.root, "repack", "-adfq", "--depth=20")
    filled.objects.forget()
    assert _same(filled, git) == 2 * len(_ids(filled, git))


def test_little_is_remembered(filled: Ledger, git: Git, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packreader, "_KEPT_BYTES_MAX", 10_000)
    git(filled.root, "repack", "-adfq", "--depth=50")
    filled.objects.forget()
    assert _same(filled, git) == 2 * len(_ids(filled, git))


def test_what_is_not_there_is_none(filled: Ledger, git: Git) -> None:
    reader = PackReader(filled.layout)
    assert reader.get("0" * 40) is None
    assert reader.get("f" * 40) is None
    filled.room("here").post("Cid", "later")
    main = git(filled.root, "rev-parse", "main").strip()
    assert reader.get(main) is None
    reader.close()
    assert reader.get(main) is None


@pytest.mark.broken_on_purpose
def test_damage_is_left_to_who_can_name_it(filled: Ledger, git: Git) -> None:
    ids = _ids(filled, git)
    filled.objects.forget()
    for path in filled.layout.packs.iterdir():
        if path.suffix == ".pack":
            path.chmod(0o644)
            data = bytearray(path.read_bytes())
            for at in range(12, len(data) - 20, 7):
                data[at] ^= 0xA5
            path.write_bytes(data)
    reader = PackReader(filled.layout)
    for oid in ids:
        reader.get(oid)  # it may answer nonsense, which hashing tells, but must not raise
    reader.close()
    for path in filled.layout.packs.iterdir():
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:100] if path.suffix == ".idx" else b"")
    reader = PackReader(filled.layout)
    assert all(reader.get(oid) is None for oid in ids)
    reader.close()
