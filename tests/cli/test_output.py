"""Output that is safe to show and exact to read back."""

from __future__ import annotations

import msgspec
import pytest

from agent_chatroom_ledger.cli.output import json_text, path_text

DANGEROUS = "a\x1b[31mb\x7f\x9b\u202ec\u2066\u2028d\ufeff\x00"


def test_json_never_holds_a_raw_control_character() -> None:
    shown = json_text({"body": DANGEROUS})
    assert shown.isprintable()
    assert msgspec.json.decode(shown) == {"body": DANGEROUS}


def test_indented_json_reads_back_the_same() -> None:
    document = {"body": DANGEROUS, "list": [1, {"é": "ü"}]}
    assert msgspec.json.decode(json_text(document, indent=2)) == document
    assert "\n" in json_text(document, indent=2)


def test_letters_of_any_script_stay_letters() -> None:
    assert json_text(["naïve", "日本", "👩‍💻"]) == '["naïve","日本","👩‍💻"]'


@pytest.mark.parametrize(("path", "shown"), [("/a/ü", "/a/ü"), ("/a/\udcff", "/a/\\xff")])
def test_paths_that_are_no_text_are_shown_escaped(path: str, shown: str) -> None:
    assert path_text(path) == shown
