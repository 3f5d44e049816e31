"""The JSON documents of git's hooks."""

from __future__ import annotations

from typing import Annotated

import msgspec

from agent_chatroom_ledger.cli.schemabase import Shape


class HookIssueShape(Shape):
    """Something that is wrong; `path` names the file or the commit."""

    severity: str
    code: str
    message: str
    path: str


class HookDocument(Shape):
    """Whether git may go on, what was brought up to date, and what is wrong."""

    hook: str
    ok: bool
    done: list[str]
    issues: list[HookIssueShape]
    counts: dict[str, int]


class HooksDocument(Shape):
    """Where the hooks are, and which."""

    directory: str
    hooks: list[str]
    chained: Annotated[
        list[str], msgspec.Meta(description="those that run a hook which was there before")
    ]
