"""An agent as a program: the official client over a real server, until it is killed or told to end.

``python -m tests.mcp.mate ROOT NAME OTHER COUNT LOG STOP``: it says COUNT things, half of them in
the room ``review`` and half directly, takes what is for it, writes down the id of each message it
was given, and only then says that it has seen it. It begins as a session does whose hook tells it
what the one before was given and has not seen: that one may have been killed before it could read.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.limits import DELIVER_MAX
from tests.mcp.conftest import COMMAND, Tools, environment


async def main(root: Path, name: str, other: str, count: int, log: Path, stop: Path) -> None:
    """Talk until there is nothing more to say, nothing waits and the stop file is there."""
    with Ledger.open(root, read_only=True) as ledger:
        for item in ledger.agent(name).inbox(DELIVER_MAX, again=True, peek=True):
            if item.again:
                note(log, item.message.id)
    command, *rest = COMMAND
    server = StdioServerParameters(command=command, args=rest, env=environment(root, name))
    async with Client(server, mode="auto") as client:
        me = Tools(client)
        said = 0
        while True:
            if said < count:
                # A key makes it one message, however often it is said again after a kill.
                what = {"body": f"{name} says {said}", "key": f"{name}-{said}"}
                if said % 2:
                    await me.call("rooms_dm", to=[other], **what)
                else:
                    await me.call("rooms_post", room="review", **what)
                said += 1
            taken = await me.call("rooms_inbox", wait_seconds=0.1)
            for message in taken["messages"]:
                note(log, message["id"])
                await me.call("rooms_seen", room=message["room"], through=message["ref"])
            if said == count and not taken["messages"] and await anyio.Path(stop).exists():
                return


def note(log: Path, record_id: str) -> None:
    """Write down an id in one step."""
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, json.dumps(record_id).encode() + b"\n")
    os.close(descriptor)


if __name__ == "__main__":
    given = sys.argv[1:]
    anyio.run(
        main, Path(given[0]), given[1], given[2], int(given[3]), Path(given[4]), Path(given[5])
    )
