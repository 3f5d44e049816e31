from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from agent_chatroom_ledger.errors import InvalidInput

if TYPE_CHECKING:
    from tests.clients.conftest import Home

GROUP = {"hooks": [{"type": "command", "command": "theirs.sh"}]}
CLAUDE, CODEX, GEMINI = ".claude/settings.json", ".codex/hooks.json", ".gemini/settings.json"


def hooks(*groups: Any) -> str:
    return json.dumps({"hooks": {"Stop": [GROUP, *groups]}}, indent=1)


# What the real programs do with each is looked at in tests/real_clients/test_hookforms.py.
REFUSED = [
    (CLAUDE, hooks({}), "without its array of hooks"),
    (CLAUDE, hooks({"type": "command", "command": "x"}), "without its array of hooks"),
    (CLAUDE, hooks(1), "not an object"),
    (CLAUDE, hooks({"matcher": 1, "hooks": []}), "matcher"),
    (CLAUDE, hooks({"hooks": [{"type": "command"}]}), "out of form"),
    (
        CLAUDE,
        hooks({"hooks": [{"type": "command", "command": "x", "timeout": "5"}]}),
        "out of form",
    ),
    (CODEX, "\ufeff" + hooks(), "byte order mark"),
    (CODEX, '{"version": 1, "hooks": {}}', "'version' beside 'hooks'"),
    (CODEX, '{"hooks": {"Stop": [], "Stop": []}}', "'Stop' stands twice"),
    (CODEX, '{"hooks": null}', "not an object"),
    (CODEX, hooks(1), "not an object"),
    (CODEX, hooks({"matcher": 1, "hooks": []}), "matcher"),
    (CODEX, hooks({"hooks": [{"type": "command"}]}), "out of form"),
    (GEMINI, "\ufeff{}", "byte order mark"),
]
KEPT = [
    (CLAUDE, "\ufeff" + hooks()),
    (CLAUDE, '{"hooks": {"Foreign": {}}, "model": "x"}'),
    (CLAUDE, hooks({"hooks": [{"type": "prompt", "prompt": "x"}], "x": 1})),
    (CODEX, '{"description": "mine", "hooks": {"Foreign": 1}}'),
    (CODEX, hooks({}, {"matcher": None, "hooks": []}, {"hooks": [{"type": "prompt"}], "x": 1})),
    (GEMINI, '{"hooks": {"Foreign": {}}}'),
]


@pytest.mark.parametrize(("name", "text", "why"), REFUSED, ids=range(len(REFUSED)))
def test_a_file_that_the_client_drops_in_silence_is_refused(
    home: Home, name: str, text: str, why: str
) -> None:
    client = name.partition("/")[0].removeprefix(".")
    home.put(name, text)
    with pytest.raises(InvalidInput, match=why) as refused:
        home.apply(client)
    assert f"{name}, line " in refused.value.message
    assert home.files() == {name: text.encode()}
    assert home.status(client).state == "unreadable"
    assert not home.remove(client).changed


@pytest.mark.parametrize(("name", "text"), KEPT, ids=range(len(KEPT)))
def test_what_the_client_passes_over_stays(home: Home, name: str, text: str) -> None:
    client = name.partition("/")[0].removeprefix(".")
    home.put(name, text)
    home.apply(client)
    assert home.status(client).state == "current"
    home.remove(client)
    assert home.files() == {name: text.encode()}
