"""The addresses of rooms."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.errors import NotFound
from agent_chatroom_ledger.mcp.roomuris import path_of, uri_of

PART = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1)


@given(st.lists(PART, min_size=1, max_size=4))
def test_an_address_is_ascii_and_leads_back(parts: list[str]) -> None:
    path = "/".join(parts)
    if path.startswith("rooms/"):
        return
    uri = uri_of(path)
    assert uri.isascii()
    assert path_of(uri) == path
    split = urlsplit(uri)
    assert (split.scheme, split.netloc, split.query, split.fragment) == ("room", "", "", "")


def test_the_path_of_a_room_is_meant_with_or_without_its_folder() -> None:
    assert uri_of("rooms/team/Überblick") == "room:///team/%C3%9Cberblick"
    assert uri_of("team/Überblick") == uri_of("rooms/team/Überblick")


@pytest.mark.parametrize("uri", ["", "room:", "room://x", "room:///", "file:///x", "room:///%ff"])
def test_what_is_no_address_of_a_room_is_not_found(uri: str) -> None:
    with pytest.raises(NotFound, match="no address of a room"):
        path_of(uri)
