"""Names: none leaves its directory, forges a header, or is taken for ours (invariant 7)."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_chatroom_ledger.domain.names import (
    RESERVED,
    check_author,
    check_folder,
    check_origin,
    check_room_path,
    check_slug,
    check_title,
    crowd_directory,
    fold_name,
    git_identity,
    mint_origin,
    numbered_slug,
    room_directory,
    slug_of,
)
from agent_chatroom_ledger.errors import InvalidInput
from agent_chatroom_ledger.limits import (
    AUTHOR_CHARS_MAX,
    FOLDER_DEPTH_MAX,
    ORIGIN_CHARS_MAX,
    ROOM_PATH_BYTES_MAX,
    SLUG_BYTES_MAX,
    TITLE_CHARS_MAX,
)
from tests.domain.samples import HOSTILE, hostile_texts

# Reserved with any extension; our own names are reserved as they stand.
DEVICES = RESERVED - {
    "messages",
    "operations",
    "versions",
    "view",
    "room.json",
    "policy.json",
    ".git",
}


def assert_safe_part(part: str) -> None:
    """Fail when one part of a path is not harmless on every file system that we know of."""
    assert part
    assert len(part.encode()) <= SLUG_BYTES_MAX
    assert not re.search(r'[\x00-\x1f\x7f/\\<>:"|?*]', part)
    assert part[-1] not in " ."
    assert part[0] not in ".-"
    assert fold_name(part) not in RESERVED
    assert part.split(".", maxsplit=1)[0].casefold() not in DEVICES
    assert unicodedata.is_normalized("NFC", part)


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Design review", "design-review"),
        ("  Design -- review!  ", "design-review"),
        ("v1.2 plan", "v1.2-plan"),
        ("a_b", "a_b"),
        ("...", "room"),
        ("", "room"),
        ("\U0001f600\U0001f389", "room"),
        ("Ship it \U0001f680", "ship-it"),
        (
            "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd",
            "\u05e9\u05dc\u05d5\u05dd-\u05e2\u05d5\u05dc\u05dd",
        ),
        ("Cafe\u0301", "caf\u00e9"),
        ("\uff26\uff55\uff4c\uff4c", "full"),
        ("../../etc/passwd", "etc-passwd"),
        (".git", "git"),
        ("CON", "room-con"),
        ("nul.txt", "room-nul.txt"),
        ("com\u00b9", "room-com1"),
        ("room.json", "room-room.json"),
        ("Messages", "room-messages"),
        ("a. b", "a-b"),
        ("a\nb", "a-b"),
        ("\ud800x", "x"),
        ("x" * 10_000, "x" * SLUG_BYTES_MAX),
    ],
)
def test_readable_slugs(title: str, slug: str) -> None:
    assert slug_of(title) == slug


@given(st.one_of(hostile_texts, st.text(min_size=1)))
def test_every_title_gives_a_safe_slug(title: str) -> None:
    slug = slug_of(title)
    assert_safe_part(slug)
    assert check_slug(slug) == slug
    assert check_room_path(room_directory("", slug, crowded=False)) == ("", slug)


@given(hostile_texts, st.integers(2, 10**6))
def test_numbered_slugs_are_safe_and_different(title: str, k: int) -> None:
    slug = slug_of(title)
    numbered = numbered_slug(slug, k)
    assert check_slug(numbered) == numbered
    assert numbered.endswith(f"_{k}")
    assert numbered != numbered_slug(slug, k + 1)


@pytest.mark.parametrize(
    "slug", ["", "A", "a b", "a/b", "..", ".git", "con", "view", "a.", "~3f", "e\u0301", "a\u200db"]
)
def test_other_slugs_are_refused(slug: str) -> None:
    with pytest.raises(InvalidInput):
        check_slug(slug)


def test_names_that_some_file_system_takes_for_one_fold_to_one() -> None:
    for one, other in (
        ("Parking_Lot", "parking_lot"),
        ("caf\u00e9", "CAFE\u0301"),
        ("stra\u00dfe", "STRASSE"),
        ("\uff41", "A"),
        ("\ufb01x", "FIX"),
    ):
        assert fold_name(one) == fold_name(other)
    assert fold_name("a") != fold_name("b")


@given(st.text())
def test_folding_is_stable(text: str) -> None:
    assert fold_name(fold_name(text)) == fold_name(text)


@pytest.mark.parametrize(
    "folder", ["", "a", "a/b", "Parking_Lot", "Q3 plans/\u05e9\u05dc\u05d5\u05dd", "v1.2"]
)
def test_folders_stay_as_they_are(folder: str) -> None:
    assert check_folder(folder) == folder


def test_folders_are_brought_into_nfc() -> None:
    assert check_folder("cafe\u0301") == "caf\u00e9"


@pytest.mark.parametrize(
    "folder",
    [
        "/",
        "/a",
        "a/",
        "a//b",
        ".",
        "a/..",
        "a/../b",
        "a/.hidden",
        "a\\b",
        "a/CON",
        "a/nul.txt",
        "a/messages",
        "room.json/a",
        "~3f",
        "a ",
        " a",
        "a.",
        "-rf",
        "a:b",
        "a\nb",
        "a\u202eb",
        "/".join("a" * (FOLDER_DEPTH_MAX + 1)),
        "x" * (SLUG_BYTES_MAX + 1),
        "\u00e9" * SLUG_BYTES_MAX,
    ],
)
def test_folders_that_could_do_harm_are_refused(folder: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_folder(folder)
    assert caught.value.fields["field"] == "folder"


@given(st.one_of(hostile_texts, st.lists(hostile_texts, min_size=1, max_size=3).map("/".join)))
def test_a_folder_is_safe_or_refused(folder: str) -> None:
    try:
        checked = check_folder(folder)
    except InvalidInput as error:
        error.message.encode()
        return
    assert checked == unicodedata.normalize("NFC", folder)
    for part in checked.split("/") if checked else ():
        assert_safe_part(part)


def test_room_directories() -> None:
    assert room_directory("", "design", crowded=False) == "rooms/design"
    assert room_directory("a/b", "design", crowded=False) == "rooms/a/b/design"
    assert crowd_directory("design") == "~a7"
    assert room_directory("a", "design", crowded=True) == "rooms/a/~a7/design"
    assert check_room_path("rooms/a/~a7/design") == ("a", "design")
    assert check_room_path("rooms/a/b/design") == ("a/b", "design")


def test_a_room_path_has_a_limit() -> None:
    folder = "/".join(["x" * 60] * 6)
    with pytest.raises(InvalidInput, match=str(ROOM_PATH_BYTES_MAX)):
        room_directory(folder, "y" * 80, crowded=False)


@pytest.mark.parametrize(
    "path",
    [
        *HOSTILE,
        "rooms",
        "rooms/",
        "rooms/a/",
        "rooms//a",
        "rooms/../a",
        "/rooms/a",
        "other/a",
        "rooms/A",
        "rooms/~00/design",
        "rooms/~a7/~a7/design",
        "rooms/a/view",
    ],
)
def test_what_is_no_room_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput):
        check_room_path(path)


@pytest.mark.parametrize(
    "author",
    [
        "A",
        "Analyst",
        "x" * AUTHOR_CHARS_MAX,
        "a <b> c",
        "..",
        "a/b",
        "\U0001f468\u200d\U0001f469",
        "\u05e9\u05dc\u05d5\u05dd",
    ],
)
def test_authors_stay_as_they_are(author: str) -> None:
    assert check_author(author) == author


@pytest.mark.parametrize(
    "author",
    [
        "",
        " ",
        " a",
        "a ",
        "a\n",
        "a\nb",
        "a\tb",
        "\0",
        "\x1b[m",
        "a\u2028b",
        "\u202ea",
        "a\u200b",
        "A\u00adna",
        "\u3164",
        "a\U000e0041",
        "*",
        "\ud800",
        "x" * (AUTHOR_CHARS_MAX + 1),
        "x" * 10_000,
    ],
)
def test_other_authors_are_refused(author: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_author(author, "member")
    assert caught.value.fields["field"] == "member"
    caught.value.message.encode()
    str(caught.value.fields["value"]).encode()


def test_titles() -> None:
    assert check_title("x" * TITLE_CHARS_MAX) == "x" * TITLE_CHARS_MAX
    for title in ("", "\t", "a\nb", "x" * (TITLE_CHARS_MAX + 1), "\u2029"):
        with pytest.raises(InvalidInput):
            check_title(title)


@given(st.text(), st.binary(min_size=2, max_size=16))
def test_minted_origins_are_origins(hostname: str, entropy: bytes) -> None:
    origin = mint_origin(hostname, entropy)
    assert check_origin(origin) == origin
    assert origin.endswith("-" + entropy[:2].hex())


def test_origins_are_readable() -> None:
    assert mint_origin("mbp.local", b"\x3f\x2a") == "mbp-3f2a"
    assert mint_origin("Eva's MacBook", b"\x00\x01") == "eva-s-macbook-0001"
    assert mint_origin("", b"\xff\xff") == "host-ffff"


@pytest.mark.parametrize(
    "origin", [*HOSTILE, "A", "a_b", "-a", "con", "x" * (ORIGIN_CHARS_MAX + 1)]
)
def test_other_origins_are_refused(origin: str) -> None:
    with pytest.raises(InvalidInput):
        check_origin(origin)


@given(hostile_texts)
def test_no_author_forges_a_commit_header(author: str) -> None:
    name, email = git_identity(author, "mbp-3f2a")
    header = f"author {name} <{email}> 1795987662 +0000"
    header.encode()
    assert re.fullmatch(r"author [^<>\n\0]+ <[^<>\s\0]+@mbp-3f2a> 1795987662 \+0000", header)
    assert name == name.strip()
    assert not any(unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"} for c in name + email)


def test_identities_are_readable_and_stay_apart() -> None:
    assert git_identity("Analyst", "mbp-3f2a") == ("Analyst", "analyst@mbp-3f2a")
    assert git_identity("Ana Lyst", "x-1") == ("Ana Lyst", "ana-lyst@x-1")
    assert git_identity("<>", "x-1")[0] == "\u2039\u203a"
    assert git_identity("a<b", "x-1")[0] != git_identity("ab", "x-1")[0]
    assert git_identity("...", "x-1") == ("unnamed", "unnamed@x-1")
    assert git_identity("\U0001f600", "x-1") == ("\U0001f600", "author@x-1")
