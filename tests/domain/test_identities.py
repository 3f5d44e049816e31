"""What the environment says about who somebody is."""

from __future__ import annotations

import pytest

from agent_chatroom_ledger.domain.identities import pane_of, session_of, spoken_name


def test_names_of_the_environment_have_an_order() -> None:
    all_three = {"PI_AGENT_NAME": "c", "PI_ROOMS_NAME": "b", "ROOMS_NAME": "a"}
    assert spoken_name(all_three) == ("a", "ROOMS_NAME")
    assert spoken_name({**all_three, "ROOMS_NAME": ""}) == ("b", "PI_ROOMS_NAME")
    assert spoken_name({"PI_AGENT_NAME": "c"}) == ("c", "PI_AGENT_NAME")
    assert spoken_name({}) is None


def test_a_session_is_what_the_client_itself_says() -> None:
    inherited = {"CLAUDE_CODE_SESSION_ID": "outer", "CODEX_THREAD_ID": "inner"}
    assert session_of(inherited, "claude-code") == "outer"
    assert session_of(inherited, "codex") == "inner"
    assert session_of(inherited, "tmux") is None
    assert session_of({"CODEX_THREAD_ID": ""}, "codex") is None


@pytest.mark.parametrize(
    ("environment", "pane"),
    [
        ({}, None),
        ({"TMUX": "/run/tmux-0/default,77,0", "TMUX_PANE": "%3"}, "tmux:%3"),
        ({"TMUX": "/run/tmux-0/work,77,0", "TMUX_PANE": "%3"}, "tmux:work:%3"),
        ({"TMUX_PANE": "%3", "KITTY_WINDOW_ID": "1"}, "tmux:%3"),
        ({"ZELLIJ_PANE_ID": "2", "ZELLIJ_SESSION_NAME": "s"}, "zellij:s:2"),
        ({"WEZTERM_PANE": "4"}, "wezterm:4"),
        ({"KITTY_WINDOW_ID": "1", "KITTY_PID": "9"}, "kitty:9:1"),
        ({"ITERM_SESSION_ID": "w0t0p0:A"}, "iterm:w0t0p0:A"),
    ],
)
def test_a_pane_is_the_innermost(environment: dict[str, str], pane: str | None) -> None:
    assert pane_of(environment) == pane
