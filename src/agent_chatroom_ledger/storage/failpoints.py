"""Named points between two steps of the write path, where a fault test can stop, kill or fail it.

A point costs one truth test while nothing is armed. Tests arm points; the product never does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_armed: dict[str, Callable[[str], None]] = {}
_every: list[Callable[[str], None]] = []


def reach(name: str) -> None:
    """Run what a test has armed for this point; nothing in production."""
    if _armed or _every:
        for observer in tuple(_every):
            observer(name)
        action = _armed.get(name)
        if action is not None:
            action(name)


def arm(name: str, action: Callable[[str], None]) -> None:
    """Let `action(name)` run whenever the point is reached: it may raise, kill or sleep."""
    _armed[name] = action


def observe(action: Callable[[str], None]) -> None:
    """Let `action(name)` run at every point, for tests that walk over all of them."""
    _every.append(action)


def disarm() -> None:
    """Forget everything that was armed."""
    _armed.clear()
    _every.clear()
