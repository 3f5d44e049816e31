"""The agent hook: `rooms hook agent`, which agents' clients call (docs/agent-hooks.md).

It starts before click and exits 0 whatever happens: in a client, exit 2 erases a prompt or keeps
an agent from stopping. Importing this package imports nothing else.
"""

from __future__ import annotations


def arguments_of(words: list[str]) -> list[str] | None:
    """Return what follows `hook agent` on a command line; None when that is not what is called.

    Options before it are those of `rooms` itself. Who asks for help is shown the page of the
    command line.
    """
    given: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        given.append(rest.pop(0))
        if given[-1] == "--root" and rest:
            given.append(rest.pop(0))
    if rest[:2] != ["hook", "agent"]:
        return None
    options = rest[: rest.index("--")] if "--" in rest else rest
    if {"-h", "--help"} & {*given, *options}:
        return None
    return [*given, *rest[2:]]
