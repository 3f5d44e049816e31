"""JSON text that is edited where it stands: every byte that is not ours stays as it is.

A removal is the inverse of an insertion, without a note kept anywhere, because an insertion leaves
a trace in white space that no parser sees and no eye minds. What follows the opening bracket of a
container says where the container came from: white space that begins with one blank before the
end of the line means that it was there, and empty; with two, that it was there and held only white
space, which now stands before its end; anything else, that it came with what is in it, and goes
with it. A formatter that tidies the file takes the trace along; then an empty container goes too.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from json.decoder import JSONDecoder
from typing import Any, Final

from agent_chatroom_ledger.clients.refusals import Place, unreadable

BOM: Final = "\ufeff"
_BLANK: Final = re.compile(r"[ \t\n\r]*")
# Strings first, so that what looks like a comment inside of one is passed over.
_COMMENT: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n\r]*|/\*.*?\*/', re.DOTALL)
_WAS_EMPTY: Final = re.compile(r" (?:\r?\n[ \t]*)?")
_WAS_BLANK: Final = re.compile(r"  (?:\r?\n[ \t]*)?")

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Child:
    """One member of an object (``name`` is its key) or one element of an array (its place)."""

    name: str | int
    start: int
    value: int
    end: int


@dataclass(frozen=True)
class Container:
    """An object or an array in the text: its brackets, and what is between them."""

    start: int
    end: int
    children: tuple[Child, ...]


def _no_constant(word: str) -> Any:  # noqa: ANN401 - the decoder's own signature
    raise ValueError(f"{word} is no JSON")


_DECODER: Final = JSONDecoder(parse_constant=_no_constant)


class JsonText:
    """A JSON document and its text; every edit gives a new one whose data is what was meant.

    With ``comments`` those of the text are kept, for a client that allows them. Raises InvalidInput
    (code ``client_file_unreadable``, with the line) for text that the client could not parse, and
    for a document that is not an object.
    """

    def __init__(self, place: Place, text: str, *, comments: bool = False) -> None:
        self.place = place
        self.comments = comments
        self.bom = BOM if text.startswith(BOM) else ""
        self.text = text.removeprefix(BOM)
        # The same text with a blank for each character of a comment: offsets are those of both.
        self.plain = _without_comments(self.text) if comments else self.text
        self.data: dict[str, Any] = self._parsed()

    @property
    def whole(self) -> str:
        """The text with its byte order mark."""
        return self.bom + self.text

    @property
    def empty(self) -> bool:
        """Tell whether there is nothing but white space."""
        return not self.plain.strip(" \t\r\n")

    @property
    def repeated(self) -> str | None:
        """A key that stands twice in one object, None where there is none."""
        twice: list[str] = []

        def seen(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found = dict(pairs)
            if len(found) < len(pairs) and not twice:
                keys = [key for key, _ in pairs]
                twice.append(next(key for key in keys if keys.count(key) > 1))
            return found

        if not self.empty:
            json.loads(self.plain, object_pairs_hook=seen)
        return twice[0] if twice else None

    def get(self, path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
        """Return the value at a path, or None."""
        found: Any = self.data
        for step in path:
            if isinstance(found, dict) and isinstance(step, str):
                found = found.get(step)
            elif isinstance(found, list) and isinstance(step, int) and step < len(found):
                found = found[step]
            else:
                return None
        return found

    def line_of(self, path: Path) -> int:
        """Return the line, from 1, on which the value at a path begins."""
        offset = self._offset(path)
        return self.text.count("\n", 0, offset) + 1

    def set_member(self, path: Path, key: str, value: object) -> JsonText:
        """Put a member into the object at a path; it is made, with its parents, if need be.

        A member that is there has its value replaced; a new one comes last.
        """
        if self.empty:
            return self._begun(_nested((*path, key), value))
        for depth, step in enumerate(path):
            if self.get(path[: depth + 1]) is None:
                if not isinstance(step, str):
                    raise IndexError(step)
                rest = (*path[depth + 1 :], key)
                return self.set_member(path[:depth], step, _nested(rest, value))
        box = self._container(path, dict)
        known = {child.name: child for child in box.children}
        if key in known:
            shown = self._rendered(value, self._indent_at(known[key].start), one_line=False)
            old = known[key]
            return self._edited([(old.value, old.end, shown)])
        return self._appended(box, value, key=key)

    def append(self, path: Path, value: object) -> JsonText:
        """Put an element last into the array at a path; the array is made if need be."""
        if self.get(path) is None:
            key = path[-1]
            if not isinstance(key, str):
                raise IndexError(key)
            return self.set_member(path[:-1], key, [value])
        return self._appended(self._container(path, list), value, key=None)

    def remove(self, path: Path) -> JsonText | None:
        """Take out what is at a path, and the containers that came with it.

        None: nothing is left, and the file came with what is taken out.
        """
        parent = path[:-1]
        box = self._container(parent, dict if isinstance(path[-1], str) else list)
        which = max(n for n, child in enumerate(box.children) if child.name == path[-1])
        if len(box.children) > 1:
            return self._edited(self._cuts(box, which))
        lead = self.text[box.start + 1 : box.children[0].start]
        tail = self.text[box.children[0].end : box.end - 1]
        if lead.strip(" \t\r\n") or tail.strip(" \t\r\n"):  # comments, which stay
            return self._edited(self._cuts(box, which))
        if _WAS_EMPTY.fullmatch(lead):
            return self._edited([(box.start + 1, box.end - 1, "")])
        if _WAS_BLANK.fullmatch(lead):
            return self._edited([(box.start + 1, box.children[0].end, "")])
        if parent:
            return self.remove(parent)
        before, after = self.text[: box.start], self.text[box.end :]
        if after.strip(" \t\r\n") or (before.strip(" \t\r\n") and after):
            return self._edited([(box.start + 1, box.end - 1, "")])
        if not self.bom and not before and after in {"\n", "\r\n"}:
            return None
        return JsonText(self.place, self.bom + before + after, comments=self.comments)

    def keys(self, path: Path) -> list[str]:
        """Return the keys of the object at a path, in their order."""
        found = self.get(path)
        return list(found) if isinstance(found, dict) else []

    # How the text is read.

    def _parsed(self) -> dict[str, Any]:
        if self.empty:
            return {}
        try:
            data = json.loads(self.plain, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            raise unreadable(self.place, self._why(error), line=error.lineno) from None
        except RecursionError:
            raise unreadable(self.place, "it is nested too deeply") from None
        except ValueError as error:
            raise unreadable(self.place, str(error)) from None
        if not isinstance(data, dict):
            raise unreadable(self.place, "it holds no JSON object", line=1)
        return data

    def _why(self, error: json.JSONDecodeError) -> str:
        rest = self.plain[error.pos : error.pos + 2]
        if rest[:1] == "/":
            return "a comment, which this client does not allow"
        before = self.plain[: error.pos].rstrip(" \t\r\n")
        # Python's versions point at the comma or behind it.
        if (rest[:1] in "}]" and before.endswith(",")) or "trailing comma" in error.msg:
            return "a comma before a closing bracket"
        return error.msg

    def _container(self, path: Path, kind: type) -> Container:
        value = self.get(path)
        if not isinstance(value, kind):
            where = ".".join(str(step) for step in path) or "the document"
            what = "an object" if kind is dict else "an array"
            raise unreadable(self.place, f"{where} is not {what}", line=self.line_of(path))
        return self._scanned(self._offset(path))

    def _offset(self, path: Path) -> int:
        """Return where the value at a path begins; of members with one name the last counts."""
        at = self._skip(0)
        for step in path:
            matching = [child for child in self._scanned(at).children if child.name == step]
            if not matching:
                break
            at = matching[-1].value
        return at

    def _scanned(self, at: int) -> Container:
        """Read the brackets and the children of the container that begins at an offset."""
        plain, children = self.plain, list[Child]()
        is_object = plain[at] == "{"
        closing = "}" if is_object else "]"
        here = self._skip(at + 1)
        while plain[here] != closing:
            start, name = here, len(children)
            key: str | int = name
            if is_object:
                key, here = _DECODER.raw_decode(plain, here)
                here = self._skip(self._skip(here) + 1)
            _, end = _DECODER.raw_decode(plain, here)
            children.append(Child(key, start, here, end))
            here = self._skip(end)
            if plain[here] == ",":
                here = self._skip(here + 1)
        return Container(at, here + 1, tuple(children))

    def _skip(self, at: int) -> int:
        found = _BLANK.match(self.plain, at)
        return at if found is None else found.end()

    # How the text is written.

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def _unit(self) -> str:
        """The indentation of one level, as the document has it."""
        found = re.match(r"\{[ \t]*\r?\n([ \t]+)\S", self.text[self._skip(0) :])
        return found[1] if found else "  "

    @property
    def _one_line(self) -> bool:
        """Tell whether the whole document stands on one line and says something."""
        inner = self.text.strip(" \t\r\n")
        return "\n" not in inner and inner.strip("{} \t") != ""

    @property
    def _separators(self) -> tuple[str, str]:
        return ("," if re.search(r'":\S', self.text) else ", "), (
            ":" if re.search(r'":\S', self.text) else ": "
        )

    def _indent_at(self, offset: int) -> str:
        """Return the white space with which the line of an offset begins."""
        line = self.text[self.text.rfind("\n", 0, offset) + 1 : offset]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _rendered(self, value: object, indent: str, *, one_line: bool) -> str:
        if one_line or self._one_line:
            return json.dumps(value, ensure_ascii=False, separators=self._separators)
        shown = json.dumps(value, ensure_ascii=False, indent=self._unit)
        return shown.replace("\n", self._newline + indent)

    def _begun(self, value: object) -> JsonText:
        """Give a document to an empty file; one that is there has no line end of its own."""
        inside = self.plain[-1:] != self.text[-1:]  # of a comment that no line end ends
        text = self.text + ("\n" if inside else "")
        text += json.dumps(value, ensure_ascii=False, indent=2)
        return JsonText(self.place, self.bom + text, comments=self.comments)

    def _appended(self, box: Container, value: object, *, key: str | None) -> JsonText:
        if not box.children:
            return self._filled(box, value, key)
        last, first = box.children[-1], box.children[0]
        gap = self.text[box.start + 1 : first.start]
        if "\n" in gap:
            indent = self._indent_at(first.start)
            lead, one_line = self._newline + indent, False
        else:
            indent, one_line = "", True
            lead = self._separators[0][1:]
        shown = self._member(key, value, indent, one_line=one_line)
        # A comment behind the last value stays with it.
        tail = self.text[last.end : box.end - 1]
        line = tail.split("\n", 1)[0].rstrip(" \t\r")
        point = last.end + len(line) if line else last.end
        if point == last.end:
            return self._edited([(point, point, "," + lead + shown)])
        if one_line:
            lead = self._newline
        return self._edited([(last.end, last.end, ","), (point, point, lead + shown)])

    def _filled(self, box: Container, value: object, key: str | None) -> JsonText:
        """Put the first child into a container that was there: see the trace of the module."""
        inner = self.text[box.start + 1 : box.end - 1]
        if inner.strip(" \t\r\n"):  # nothing but comments: they stay before it
            indent = self._indent_at(box.start) + self._unit
            shown = self._member(key, value, indent, one_line=False)
            point = box.start + 1 + len(inner.rstrip(" \t\r\n"))
            return self._edited([(point, point, self._newline + indent + shown)])
        outer = self._indent_at(box.start)
        indent = outer + self._unit
        trace = "  " if inner else " "
        lead = trace if self._one_line else trace + self._newline + indent
        tail = inner or ("" if self._one_line else self._newline + outer)
        shown = self._member(key, value, indent, one_line=False)
        return self._edited([(box.start + 1, box.end - 1, lead + shown + tail)])

    def _member(self, key: str | None, value: object, indent: str, *, one_line: bool) -> str:
        shown = self._rendered(value, indent, one_line=one_line)
        if key is None:
            return shown
        return json.dumps(key, ensure_ascii=False) + self._separators[1] + shown

    def _cuts(self, box: Container, which: int) -> list[tuple[int, int, str]]:
        """Return the edits that take one child out and leave all else, comments too."""
        children = box.children
        child = children[which]
        following = children[which + 1] if which + 1 < len(children) else None
        if which == 0 and following is not None:
            between = self.text[child.end : following.start]
            if not between.replace(",", "", 1).strip(" \t\r\n"):
                return [(child.start, following.start, "")]
        before = self.text[: child.start]
        run = child.start - (len(before) - len(before.rstrip(" \t\r\n")))
        edits = []
        end = child.end
        if following is not None:
            comma = self.plain.index(",", child.end)
            edits.append((comma, comma + 1, ""))
            after = self.text[comma + 1 :] if comma == child.end else self.text[child.end :]
        else:
            after = self.text[child.end :]
            if which:
                comma = self.plain.index(",", children[which - 1].end)
                edits.append((comma, comma + 1, ""))
        # What ends a comment of a line must not go with ours.
        ends_comment = self.plain[run - 1 : run] != self.text[run - 1 : run]
        if ends_comment and not re.match(r"[ \t]*\r?\n", after):
            run = child.start
        edits.append((run, end, ""))
        return sorted(edits)

    def _edited(self, edits: list[tuple[int, int, str]]) -> JsonText:
        text = self.text
        for start, end, put in sorted(edits, reverse=True):
            text = text[:start] + put + text[end:]
        return JsonText(self.place, self.bom + text, comments=self.comments)


def created(place: Place, value: object, *, comments: bool = False) -> JsonText:
    """Return the document of a file that is not there yet."""
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    return JsonText(place, text, comments=comments)


def _nested(keys: tuple[str | int, ...], value: object) -> object:
    for key in reversed(keys):
        value = {key: value}
    return value


def _without_comments(text: str) -> str:
    def blanked(found: re.Match[str]) -> str:
        shown = found[0]
        return shown if shown.startswith('"') else re.sub(r"[^\n\r]", " ", shown)

    return _COMMENT.sub(blanked, text)
