"""TOML text that is edited where it stands: ours is appended as blocks, and cut out again.

A block is one table with the tables in it. The line ends before it tell what was there: a blank
line is ours and goes with the block; no blank line means that the text had no last line end. Where
a block cannot stand (inline tables, dotted keys), tomlkit edits the document. Either way the
outcome is parsed again and has to say what was meant.
"""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from agent_chatroom_ledger.clients.refusals import Place, uneditable, unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping

BOM: Final = "\ufeff"
_HEADER: Final = re.compile(
    r"""^[ \t]*\[\[?((?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\[\]\n"'])+)\]\]?[ \t]*(?:\#[^\n]*)?\r?$""",
    re.MULTILINE,
)
# Comments and strings of one line are matched so that what looks like a quote in them is none.
_STRING: Final = re.compile(
    r"""\"{3}(?:[^\\]|\\.)*?\"{3,5}|'{3}.*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|\#[^\n]*""",
    re.DOTALL,
)
_AT: Final = re.compile(r" \(at line (\d+), column \d+\)| at line (\d+) col \d+")

Keys = tuple[str, ...]


class TomlText:
    """A TOML document and its text; raises InvalidInput for text that no client could parse."""

    def __init__(self, place: Place, text: str, *, fresh: bool = False) -> None:
        """``fresh`` says that there is no file yet."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        self.place = place
        self.fresh = fresh
        self.bom = BOM if text.startswith(BOM) else ""
        self.text = text.removeprefix(BOM)
        try:
            # TOML 1.1, as Codex has it; the standard library's reader knows 1.0.
            self.data: dict[str, Any] = tomlkit.parse(self.text).unwrap()
        except (TOMLKitError, ValueError, RecursionError) as error:
            why = str(error) or "it is nested too deeply"
            found = _AT.search(why)
            line = int(found[1] or found[2]) if found else None
            raise unreadable(place, _AT.sub("", why), line=line) from None

    @property
    def whole(self) -> str:
        """The text with its byte order mark."""
        return self.bom + self.text

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def get(self, keys: Keys) -> Any:  # noqa: ANN401 - whatever the file holds
        """Return the value of a dotted key, or None."""
        found: Any = self.data
        for key in keys:
            found = found.get(key) if isinstance(found, dict) else None
        return found

    def line_of(self, keys: Keys) -> int | None:
        """Return the line of a table's header, from 1; None where it has no header."""
        for header in _HEADER.finditer(_masked(self.text)):
            if _key_of(header[1]) == keys:
                return self.text.count("\n", 0, header.start()) + 1
        return None

    def add_table(self, keys: Keys, values: Mapping[str, object]) -> TomlText:
        """Add a table that is not there yet, last in the document."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        meant = _with(self.data, keys, dict(values))
        shown = _shown_keys(keys)
        block = f"[{shown}]\n" + "".join(
            f"{_shown_keys((key,))} = {tomlkit.item(value).as_string()}\n"
            for key, value in values.items()
        )
        found = self._appended(block, meant)
        if found is not None:
            return found
        try:
            document = tomlkit.parse(self.text)
            table: Any = document
            for key in keys[:-1]:
                table = table.setdefault(key, tomlkit.table())
            table[keys[-1]] = _inline(values)
            return self._meaning(tomlkit.dumps(document), meant)
        except (TOMLKitError, AttributeError, TypeError, InvalidToml):
            raise self._beyond(shown) from None

    def add_hook(self, event: str, group: Mapping[str, Any]) -> TomlText:
        """Add one group of hooks for an event, as arrays of tables, last in the document."""
        import tomlkit

        def lines(values: Mapping[str, object]) -> str:
            return "".join(
                f"{_shown_keys((key,))} = {tomlkit.item(value).as_string()}\n"
                for key, value in values.items()
            )

        outer = {key: value for key, value in group.items() if key != "hooks"}
        head = _shown_keys(("hooks", event))
        block = f"[[{head}]]\n{lines(outer)}"
        for hook in group["hooks"]:
            block += f"\n[[{head}.hooks]]\n{lines(hook)}"
        before = self.get(("hooks", event)) or []
        meant = _with(self.data, ("hooks", event), [*before, dict(group)])
        found = self._appended(block, meant)
        if found is None:
            raise self._beyond(head)
        return found

    def set_values(self, keys: Keys, values: Mapping[str, object]) -> TomlText:
        """Give keys of a table that is there new values; its other keys stay."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        meant = _with(self.data, keys, {**self.get(keys), **values})
        try:
            document = tomlkit.parse(self.text)
            table: Any = document
            for key in keys:
                table = table[key]
            for key, value in values.items():
                table[key] = value
            return self._meaning(tomlkit.dumps(document), meant)
        except (TOMLKitError, KeyError, TypeError, InvalidToml):
            raise self._beyond(_shown_keys(keys)) from None

    def remove_table(self, keys: Keys) -> TomlText | None:
        """Take out a table and the tables in it; None when the file came with it."""
        import tomlkit
        from tomlkit.exceptions import TOMLKitError

        meant = _without(self.data, keys)
        cuts = [part for part in self._sections() if part[0][: len(keys)] == keys]
        try:
            return self._cut(cuts, meant)
        except InvalidToml:
            pass
        try:
            document = tomlkit.parse(self.text)
            table: Any = document
            for key in keys[:-1]:
                table = table[key]
            del table[keys[-1]]
            return self._meaning(tomlkit.dumps(document), meant)
        except (TOMLKitError, KeyError, TypeError, InvalidToml):
            raise self._beyond(_shown_keys(keys)) from None

    def remove_hook(self, event: str, group: int) -> TomlText | None:
        """Take out one group of an event's hooks; None when the file came with it."""
        groups = self.get(("hooks", event))
        meant = _with(self.data, ("hooks", event), groups[:group] + groups[group + 1 :])
        meant = meant if len(groups) > 1 else _without(self.data, ("hooks", event))
        sections, heads = self._sections(), list[int]()
        for number, (key, _, _) in enumerate(sections):
            if key == ("hooks", event):
                heads.append(number)
        if len(heads) != len(groups):  # some stand in an inline array
            raise self._beyond(_shown_keys(("hooks", event)))
        try:
            cuts = [sections[heads[group]]]
            for part in sections[heads[group] + 1 :]:
                if part[0][:2] != ("hooks", event) or len(part[0]) == 2:
                    break
                cuts.append(part)
            return self._cut(cuts, meant)
        except InvalidToml:
            raise self._beyond(_shown_keys(("hooks", event))) from None

    # How the text changes.

    def _appended(self, block: str, meant: dict[str, Any]) -> TomlText | None:
        """Append a block; None when the document then says something else, or nothing."""
        newline = self._newline
        text = self.text + ("" if self.fresh else newline) + block.replace("\n", newline)
        try:
            return self._meaning(text, meant)
        except InvalidToml:
            return None

    def _sections(self) -> list[tuple[Keys, int, int]]:
        """Return each header's key, where its line begins, and where its last value ends.

        Comments and blank lines before the next header are no part of it.
        """
        headers = list(_HEADER.finditer(_masked(self.text)))
        found = []
        for number, header in enumerate(headers):
            last = number + 1 == len(headers)
            end = len(self.text) if last else headers[number + 1].start()
            body = self.text[header.start() : end]
            while True:
                head, _, line = body.rstrip(" \t\r\n").rpartition("\n")
                if not head or not line.lstrip().startswith("#"):
                    break
                body = head
            kept = body.rstrip(" \t\r\n")
            after = re.match(r"[ \t]*(?:\r?\n)?", self.text[header.start() + len(kept) :])
            size = len(kept) + (len(after[0]) if after else 0)
            found.append((_key_of(header[1]), header.start(), header.start() + size))
        return found

    def _cut(self, parts: list[tuple[Keys, int, int]], meant: dict[str, Any]) -> TomlText | None:
        if not parts:
            raise InvalidToml
        text = self.text
        whole = not self.bom and parts[0][1] == 0
        for _, start, end in reversed(parts):
            before, after = text[:start], text[end:]
            # The line end before a block is ours, and stays only where it parts two lines.
            shorter = before.removesuffix("\n").removesuffix("\r")
            if not after or after[0] in "\r\n" or shorter.endswith("\n") or not shorter:
                before = shorter
            text = before + after
        if whole and not text.strip():
            return None
        return self._meaning(text, meant)

    def _meaning(self, text: str, meant: dict[str, Any]) -> TomlText:
        from agent_chatroom_ledger.errors import InvalidInput

        try:
            found = TomlText(self.place, self.bom + text)
        except InvalidInput:
            raise InvalidToml from None
        try:
            same = _filled(found.data) == _filled(meant)
        except RecursionError:
            raise unreadable(self.place, "it is nested too deeply") from None
        if not same:
            raise InvalidToml
        return found

    def _beyond(self, shown: str) -> Exception:
        return uneditable(self.place, shown)


class InvalidToml(Exception):
    """An edit of ours does not say what was meant."""


def created(place: Place) -> TomlText:
    """Return the document of a file that is not there yet."""
    return TomlText(place, "", fresh=True)


def _inline(values: Mapping[str, object]) -> Any:  # noqa: ANN401 - tomlkit's own item
    import tomlkit

    table = tomlkit.inline_table()
    table.update(dict(values))
    return table


def _masked(text: str) -> str:
    """Return text of the same length in which no line of a string looks like a header."""
    return _STRING.sub(
        lambda found: found[0].replace("[", "x") if "\n" in found[0] else found[0], text
    )


def _key_of(header: str) -> Keys:
    """Return the keys of a header's text; its own text where it is no key."""
    try:
        found: Any = tomllib.loads(f"[{header}]")
    except tomllib.TOMLDecodeError:
        return (header,)
    keys = []
    while found:
        key = next(iter(found))
        keys.append(key)
        found = found[key]
    return tuple(keys)


def _shown_keys(keys: Keys) -> str:
    import json

    bare = re.compile(r"[A-Za-z0-9_-]+")
    return ".".join(
        key if bare.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in keys
    )


def _with(data: dict[str, Any], keys: Keys, value: object) -> dict[str, Any]:
    first, rest = keys[0], keys[1:]
    if not rest:
        return {**data, first: value}
    inner = data.get(first, {})
    return {**data, first: _with(inner if isinstance(inner, dict) else {}, rest, value)}


def _filled(value: Any) -> Any:  # noqa: ANN401 - any value of a document
    """Return data without empty tables and arrays, which a header alone may leave behind."""
    if not isinstance(value, dict):
        return value
    kept = {key: _filled(inner) for key, inner in value.items()}
    return {key: inner for key, inner in kept.items() if inner not in ({}, [])}


def _without(data: dict[str, Any], keys: Keys) -> dict[str, Any]:
    """Return the data without a key, and without the tables that are empty then."""
    first, rest = keys[0], keys[1:]
    found = dict(data)
    if not rest:
        found.pop(first, None)
        return found
    inner = _without(found[first], rest)
    if inner:
        found[first] = inner
    else:
        del found[first]
    return found
