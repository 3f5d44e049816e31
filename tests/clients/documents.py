"""Documents as people and programs write them: the same data in many shapes of text."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

KEYS = st.sampled_from(
    ["mcpServers", "hooks", "permissions", "allow", "Stop", "SessionStart", "version", "model"]
) | st.text(max_size=6)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.text(max_size=12)
    | st.sampled_from(["// no comment", "/* none */", "a,\n}", '{"mcpServers":{}}', "\u2028"])
)
GROUP = st.fixed_dictionaries(
    {"hooks": st.lists(st.just({"type": "command", "command": "theirs.sh"}), max_size=2)},
    optional={"matcher": st.text(max_size=4)},
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
# What a client would accept: objects and arrays where it looks for them, anything elsewhere.
SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "model": VALUES,
        "mcpServers": st.dictionaries(st.sampled_from(["other", "x y", "é"]), VALUES, max_size=2),
        "hooks": st.dictionaries(
            st.sampled_from(["Stop", "SessionStart", "Foreign", "stop", "AfterTool"]),
            st.lists(GROUP, max_size=2),
            max_size=3,
        ),
        "permissions": st.fixed_dictionaries(
            {}, optional={"allow": st.lists(st.text(max_size=5), max_size=2), "deny": VALUES}
        ),
        "version": st.just(1),
        "z": VALUES,
    },
)


@st.composite
def json_texts(draw: st.DrawFn, *, comments: bool = False) -> str:
    """Draw a document and a way to write it: indented or not, with blanks anywhere, CRLF, BOM."""
    value = draw(SETTINGS)
    keys = draw(st.permutations(list(value)))
    value = {key: value[key] for key in keys}
    style = draw(st.sampled_from(["pretty", "tabs", "compact", "spaced", "wild"]))
    ascii_only = draw(st.booleans())
    if style == "wild":
        text = _wild(draw, value, comments=comments)
    else:
        indent = {"pretty": draw(st.integers(0, 4)), "tabs": "\t"}.get(style)
        separators = (",", ":") if style == "compact" else None
        text = json.dumps(value, indent=indent, separators=separators, ensure_ascii=ascii_only)
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    ends = draw(st.sampled_from(["", "\n", "\n\n", " ", "\r\n"]))
    begins = draw(st.sampled_from(["", "", "\n", "  "]))
    return draw(st.sampled_from(["", "", "\ufeff"])) + begins + text + ends


def _wild(draw: st.DrawFn, value: Any, *, comments: bool) -> str:
    """Write a value with drawn white space, and comments if they are allowed, between tokens."""
    kinds = ["", "", " ", "\n", "\n  ", "\t", "  ", " \n"]
    if comments:
        kinds += [" // said, { \n", "/* } */", '\n// \u00e9 "\n  ']
    blank = st.sampled_from(kinds)

    def gap() -> str:
        return draw(blank)

    def written(inner: Any) -> str:
        if isinstance(inner, dict):
            parts = [
                "".join([gap(), json.dumps(key), gap(), ":", gap(), written(each), gap()])
                for key, each in inner.items()
            ]
            return "{" + (",".join(parts) or draw(blank)) + "}"
        if isinstance(inner, list):
            parts = [gap() + written(each) + gap() for each in inner]
            return "[" + (",".join(parts) or draw(blank)) + "]"
        return json.dumps(inner)

    return written(value)
