"""Many real processes that do one thing at the same moment."""

from __future__ import annotations

import os
import traceback
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable


def race(count: int, action: Callable[[int], Any]) -> list[Any]:
    """Fork some children, let all go at once, and return what each returned, as JSON values.

    Fails when one of them raises. What an action uses it opens itself.
    """
    gate, go = os.pipe()
    children = []
    for number in range(count):
        source, sink = os.pipe()
        child = os.fork()
        if not child:
            os.close(go)
            os._exit(_run(gate, sink, number, action))
        os.close(sink)
        children.append((child, source))
    os.close(gate)
    os.close(go)
    found, statuses = [], []
    for child, source in children:
        with os.fdopen(source, "rb") as stream:
            found.append(stream.read())
        statuses.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    assert not any(statuses), f"children ended with {statuses}"
    return [msgspec.json.decode(data) for data in found]


def _run(gate: int, sink: int, number: int, action: Callable[[int], Any]) -> int:
    try:
        os.read(gate, 1)  # returns when the parent lets go of the other end
        result = msgspec.json.encode(action(number))
        with os.fdopen(sink, "wb") as stream:
            stream.write(result)
    except BaseException:  # noqa: BLE001 - the parent is told by the status
        traceback.print_exc()
        return 1
    return 0
