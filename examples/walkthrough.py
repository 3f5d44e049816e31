"""Two readers diverge, one restarts, a message is excluded, the view breaks and is rebuilt.

`python -m examples.walkthrough` runs it in a directory of its own and prints what happens.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from agent_chatroom_ledger import Ledger
from agent_chatroom_ledger.service import ChatroomService

READERS = ("Analyst", "Reviewer")


def main() -> None:
    """Walk through the main job in a disposable directory."""
    with TemporaryDirectory(prefix="rooms-walkthrough-") as folder:
        walk(Path(folder))


def walk(folder: Path) -> None:
    """Keep a room below `folder`, with the readers' cursors beside it, and print every step."""
    rooms = folder / "rooms"
    cursors = {name: folder / f"{name.lower()}.cursor.json" for name in READERS}
    service = ChatroomService(rooms)
    room = service.create_chat("Synthetic review", participants=list(READERS))
    room_id = room["state"]["chat_id"]

    print("Two messages arrive for two readers.")
    service.post_message(room_id, "Operator", "The synthetic run is finished.")
    service.post_message(room_id, "Operator", "18 synthetic checks passed.")
    print(f"  unread: {unread(service, cursors)}")

    print("Analyst acknowledges message 2; then the service starts anew.")
    service.mark_seen("Analyst", cursors["Analyst"], room_id, message_id=2)
    service = ChatroomService(rooms)
    print(f"  unread: {unread(service, cursors)}")

    print("Message 1 is excluded: it leaves the view, not the record.")
    service.exclude_messages(room_id, [1])
    page = Path(service.load_chat(room_id)["visible_path"])
    canonical = [message["message_id"] for message in service.load_chat(room_id)["messages"]]
    print(f"  visible: {visible(page)}, canonical: {canonical}")

    print("The compiled view is broken on purpose.")
    page.write_text("not a view any more\n", encoding="utf-8")
    print(f"  visible: {visible(page)}, lens: {seen_through_lens(service, room_id)}")

    print("Compiling rebuilds it.")
    service.compile_chat(room_id)
    print(f"  visible: {visible(page)}, unread: {unread(service, cursors)}")

    print("Reviewer acknowledges what the lens shows.")
    last = service.render_chat_lens(room_id)["last_message_id"]
    service.mark_seen("Reviewer", cursors["Reviewer"], room_id, message_id=last)
    print(f"  unread: {unread(service, cursors)}")

    report = service.verify()
    print("Everything is verified.")
    print(f"  ok: {report['ok']}, errors: {report['error_count']}, issues: {report['issues']}")

    print("The room's git log, newest first:")
    with Ledger.open(rooms, read_only=True) as ledger:
        for entry in ledger.log(room=room_id):
            print(f"  {entry.commit[:8]} {entry.subject}")


def unread(service: ChatroomService, cursors: dict[str, Path]) -> dict[str, int]:
    """Count what each reader has not acknowledged yet."""
    return {
        name: sum(item["unread_count"] for item in service.scan_unread(name, cursor))
        for name, cursor in cursors.items()
    }


def visible(page: Path) -> list[int]:
    """Read the numbers of the messages off a page of the compiled view."""
    lines = page.read_text(encoding="utf-8").splitlines()
    return [int(line.split()[1].lstrip("#")) for line in lines if line.startswith("### #")]


def seen_through_lens(service: ChatroomService, room_id: str) -> list[int]:
    """Return the ids of the messages that the lens shows, computed from the records alone."""
    return [message["message_id"] for message in service.render_chat_lens(room_id)["messages"]]


if __name__ == "__main__":
    main()
