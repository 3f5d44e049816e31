"""The rooms nearest to a name that nobody bears: few, the best first, and none that is far."""

from __future__ import annotations

from agent_chatroom_ledger.storage.index import RoomRow
from agent_chatroom_ledger.storage.nearest import nearest


def row(slug: str, title: str = "", folder: str = "") -> RoomRow:
    path = f"rooms/{folder}/{slug}" if folder else f"rooms/{slug}"
    return RoomRow(
        path=path, id=slug, title=title or slug, folder=folder, slug=slug, members=(),
        created_at="", created_by="", origin="",
    )  # fmt: skip


def test_a_mistyped_name_is_found_by_path_slug_or_title() -> None:
    rows = [row("design-review"), row("other"), row("x1", title="Quarterly plans", folder="team")]
    assert [found.slug for found in nearest(rows, "desing-review")] == ["design-review"]
    assert [found.slug for found in nearest(rows, "quarterly plan")] == ["x1"]
    assert [found.slug for found in nearest(rows, "rooms/team/x")] == ["x1"]
    assert nearest(rows, "zzzzzz") == []
    assert nearest([], "other") == []


def test_at_most_five_and_in_the_same_order_every_time() -> None:
    rows = [row(f"review-{number}") for number in range(9)]
    assert [found.slug for found in nearest(reversed(rows), "review")] == [
        f"review-{number}" for number in range(5)
    ]
