"""Creating and opening the git repository of a ledger, and the origin of this clone of it."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger.domain.clock import from_micros, new_id
from agent_chatroom_ledger.domain.frames import Header
from agent_chatroom_ledger.domain.names import check_origin, mint_origin
from agent_chatroom_ledger.errors import Conflict, Corrupt, Forbidden, InvalidInput, NotFound
from agent_chatroom_ledger.storage import files, journal, refs
from agent_chatroom_ledger.storage.layout import (
    ATTRIBUTES_FILE,
    LEDGER_FILE,
    Layout,
    is_ledger,
)
from agent_chatroom_ledger.storage.state import State, write_state

if TYPE_CHECKING:
    from agent_chatroom_ledger.storage.objects import Objects

FORMAT = 1
ATTRIBUTES = """\
# Bytes are what they are: no line-end translation, anywhere.
* -text
# Projections are folded again by the ledger, never merged as text.
room.json merge=rooms-fold
policy.json merge=rooms-fold
rooms/**/versions/** merge=rooms-fold
rooms/**/view/** merge=rooms-fold
"""
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = false
"""
_SECTION = re.compile(r"^\s*\[\s*([A-Za-z0-9.-]+)(?:\s+\"(.*)\")?\s*\]")
_SETTING = re.compile(r"^\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*?)\s*$")
_UNFINISHED = ".git-new-"
_OWN_MARK = b"This file marks git locks that belong to the ledger. Keep it.\n"


def _settings(layout: Layout) -> dict[tuple[str, str], str]:
    """Return what git's own configuration file says, keys in lower case."""
    data = files.read_bytes(layout.git / "config") or b""
    found: dict[tuple[str, str], str] = {}
    section = ""
    for line in data.decode("utf-8", "replace").splitlines():
        opened = _SECTION.match(line)
        if opened:
            section = opened.group(1).lower()
            continue
        setting = _SETTING.match(line)
        if setting:
            found[section, setting.group(1).lower()] = setting.group(2)
    return found


def setting(layout: Layout, section: str, key: str) -> str:
    """Return what the repository's own configuration says, empty when it says nothing."""
    return _settings(layout).get((section, key), "")


def open_layout(root: Path) -> Layout:
    """Return the layout of an existing ledger; nothing is written.

    Raises NotFound when there is none, InvalidInput for a repository of a kind that is not
    supported, and Corrupt (code `newer_format`) for a format newer than this version reads.
    """
    root = Path(os.path.abspath(root))
    if not is_ledger(root):
        raise NotFound(
            f"{root} is not a ledger; `rooms init` makes one, `--root` or ROOMS_ROOT names another",
            path=str(root),
        )
    layout = Layout(root, writable=_is_writable(root))
    if not layout.git.is_dir():
        raise InvalidInput(
            f"{root}/.git is a file: a ledger needs a repository of its own, not a linked work "
            "tree or a submodule",
            code="linked_work_tree",
            path=str(root),
        )
    _refuse_unsupported(layout)
    _check_format(layout)
    return layout


def _is_writable(root: Path) -> bool:
    git = root / ".git"
    return os.access(git, os.W_OK | os.X_OK) and os.access(root, os.W_OK | os.X_OK)


def _refuse_unsupported(layout: Layout) -> None:
    for (section, key), value in _settings(layout).items():
        wanted = ""
        if section == "extensions" and key == "objectformat" and value.lower() != "sha1":
            wanted = f"object format {value}; the ledger needs SHA-1"
        elif section == "extensions" and key == "refstorage" and value.lower() != "files":
            wanted = f"ref storage {value}; the ledger needs the files backend"
        elif (section == "extensions" and key == "partialclone") or (
            section == "remote" and key == "promisor" and value.lower() == "true"
        ):
            wanted = "a partial clone; clone it whole (without --filter)"
        if wanted:
            raise InvalidInput(
                f"{layout.root} uses {wanted}", code="unsupported_repository", setting=key
            )


def _check_format(layout: Layout) -> None:
    data = files.read_bytes(layout.root / LEDGER_FILE)
    if data is None:
        return  # a lost work tree: verify names it, and main still has the file
    try:
        found = msgspec.json.decode(data)["format"]
    except (msgspec.DecodeError, ValueError, KeyError, TypeError) as error:
        raise Corrupt(
            f"{LEDGER_FILE} cannot be read ({type(error).__name__}); "
            f"`git checkout main -- {LEDGER_FILE}` brings it back",
            code="bad_ledger_file",
            path=str(layout.root / LEDGER_FILE),
        ) from None
    if not isinstance(found, int) or found > FORMAT:
        raise Corrupt(
            f"this ledger has format {found}, and this version reads up to {FORMAT}: update "
            "agent-chatroom-ledger",
            code="newer_format",
            format=found,
        )


def create(root: Path, *, origin: str | None = None) -> Layout:
    """Make a ledger in a directory, which is created when it is missing.

    Safe when two processes do it at once: one makes it, the other opens it. Raises Conflict when
    the directory is a git repository already but no ledger.
    """
    root = Path(os.path.abspath(root))
    # Asked in this order, because somebody may make the ledger just now.
    if os.path.lexists(root / ".git") and not is_ledger(root):
        raise Conflict(
            f"{root} is a git repository already; a ledger needs a directory of its own, for "
            f"instance {root / 'rooms'}",
            code="foreign_repository",
            path=str(root),
        )
    if is_ledger(root):
        layout = open_layout(root)
        with files.clear_errors(f"creating a ledger in {root}"):
            _finish_creation(layout)
        return layout
    import shutil
    import tempfile

    with files.clear_errors(f"creating a ledger in {root}"):
        fresh = [path.parent for path in (root, *root.parents) if not path.exists()]
        root.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=root))
        try:
            _fill(made, origin)
            files.sync_tree(made)
            os.rename(made, root / ".git")
        except OSError:
            # Somebody else was faster, and may have swept ours away as one that was given up.
            if not is_ledger(root):
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)
        for directory in (root, *fresh):
            files.sync_directory(directory)
        _finish_creation(Layout(root))
    return open_layout(root)


def _finish_creation(layout: Layout) -> None:
    """Lay out the first files, also those of a process that was killed before it did."""
    import shutil

    if not os.path.lexists(layout.root / LEDGER_FILE):
        _lay_out(layout)
    for given_up in layout.root.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(given_up, ignore_errors=True)


def _host_name() -> str:
    import socket

    return socket.gethostname()


def _fill(git: Path, origin: str | None) -> None:
    """Make a git directory with one commit: the ledger's description and its attributes."""
    from agent_chatroom_ledger.storage.commits import LEDGER_NAME, add_commit, commit_bytes
    from agent_chatroom_ledger.storage.gitindex import Entry, plain, raw_entry
    from agent_chatroom_ledger.storage.objects import FILE_MODE, NO_OBJECT, Objects
    from agent_chatroom_ledger.storage.packs import PackBuilder
    from agent_chatroom_ledger.storage.trees import TreeEditor

    os.chmod(git, 0o777 & ~_umask())
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"):
        (git / name).mkdir(parents=True)
    (git / "HEAD").write_text(f"ref: {refs.MAIN}\n", encoding="ascii")
    (git / "description").write_text("Agent Chatroom Ledger\n", encoding="ascii")
    name = origin or mint_origin(_host_name(), os.urandom(8))
    check_origin(name)
    (git / "config").write_text(_CONFIG, encoding="utf-8")
    micros = time.time_ns() // 1000
    created_at = from_micros(micros)
    described = {
        "format": FORMAT,
        "ledger": new_id(micros, os.urandom(10)),
        "created_at": created_at,
    }
    contents = {
        ATTRIBUTES_FILE: ATTRIBUTES.encode(),
        LEDGER_FILE: msgspec.json.format(msgspec.json.encode(described), indent=2) + b"\n",
    }
    # The new directory stands for `.git` of a ledger that is not there yet.
    layout = _Elsewhere(git)
    _make_private(layout)
    objects = Objects(layout)
    editor = TreeEditor(objects, NO_OBJECT)
    pack = PackBuilder()
    entries = []
    for path, data in contents.items():
        editor.write(path, data, pack)
        entries.append((path, raw_entry(path, Entry(FILE_MODE, editor.oid(path) or ""))))
    seconds = micros // 1_000_000
    message = f"Create the ledger\n\nLedger: {described['ledger']}\n"
    tree = editor.finish(pack)
    commit = add_commit(
        pack,
        commit_bytes(tree, (), message, author=LEDGER_NAME, said=seconds, origin=name, at=seconds),
    )
    _write_git_files(git, pack.finish(), commit, plain(entries))
    _note_origin(layout, name)
    header = Header(
        generation=1,
        base=commit,
        newest_at=created_at,
        last_frame=0,
        commit_format=1,
        origin=name,
    )
    own = journal.Journal(layout)
    own.start(header, ())
    own.close()
    write_state(layout, State(commit, 0, files.boot_id()))


class _Elsewhere(Layout):
    """A layout whose git directory is not `.git` yet."""

    def __init__(self, git: Path) -> None:
        super().__init__(git.parent)
        self.__dict__["git"] = git


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _write_git_files(git: Path, pack: tuple[str, bytes, bytes], commit: str, index: bytes) -> None:
    name, data, table = pack
    for path, content in (
        (git / "objects" / "pack" / f"pack-{name}.pack", data),
        (git / "objects" / "pack" / f"pack-{name}.idx", table),
        (git / refs.MAIN, f"{commit}\n".encode()),
        (git / "index", index),
    ):
        path.write_bytes(content)
        files.sync_path(path)
        files.sync_directory(path.parent)
    anchor = git / refs.TIP
    anchor.parent.mkdir(parents=True)
    anchor.write_text(f"{commit}\n", encoding="ascii")


def _lay_out(layout: Layout) -> None:
    """Put the first commit's files into the work tree."""
    from agent_chatroom_ledger.storage.objects import Objects

    with contextlib.closing(Objects(layout)) as objects:
        for entry in objects.tree(objects.commit(refs.read_main(layout)).tree):
            path = layout.root / entry.name
            if not entry.is_tree and not os.path.lexists(path):
                files.replace(layout, path, objects.blob(entry.oid), sync=True)


def _make_private(layout: Layout) -> None:
    for directory in (
        layout.private,
        layout.journal,
        layout.cursors,
        layout.locks,
        layout.quarantine,
        layout.tmp,
        layout.private / "consumers",
    ):
        directory.mkdir(parents=True, exist_ok=True)
    if not os.path.exists(layout.own_mark):
        files.replace(layout, layout.own_mark, _OWN_MARK, sync=True)


def origin_of(layout: Layout) -> str | None:
    """Return this clone's origin; None for a fresh clone or copy that has not minted one."""
    settings = _settings(layout)
    origin, place = settings.get(("ledger", "origin")), settings.get(("ledger", "place"))
    if origin is None or place != _place(layout):
        return None
    return check_origin(origin)


def _place(layout: Layout) -> str:
    """Return what changes when a ledger's directory is copied, but not when it is moved."""
    return str(os.stat(layout.git).st_ino)


def _note_origin(layout: Layout, origin: str) -> None:
    """Write the origin into git's configuration, under git's own lock protocol.

    The lock is a mark of ours, so that one which a killed process left stops nobody.
    """
    path = layout.git / "config"
    lock = f"{layout.git}/config.lock"
    refs.take_mark(layout, lock, refs.FOREIGN_LOCK_WAIT_SECONDS_MAX)
    try:
        text = (files.read_bytes(path) or b"").decode("utf-8", "surrogateescape")
        kept, inside = [], False
        for line in text.splitlines():
            opened = _SECTION.match(line)
            if opened:
                inside = opened.group(1).lower() == "ledger"
            if not inside:
                kept.append(line)
        kept += ["[ledger]", f"\torigin = {origin}", f"\tplace = {_place(layout)}"]
        data = ("\n".join(kept) + "\n").encode("utf-8", "surrogateescape")
        # Whoever may not read the configuration, which may hold passwords, still may not.
        mode = path.stat().st_mode & 0o777
        temporary = files.write_temporary(layout, "config", data, mode=mode, sync=True)
        os.replace(temporary, path)
        files.sync_directory(layout.git)
    finally:
        refs.drop_mark(layout, lock)


def prepare(layout: Layout, objects: Objects) -> str:
    """Make ready what writing needs beside git's own files, and return the origin.

    A fresh clone gets its directories, its origin and a journal that begins on main.
    """
    if not layout.writable:
        raise Forbidden(
            f"{layout.root} cannot be written by this user; it can be read",
            code="read_only",
            path=str(layout.root),
        )
    with files.clear_errors("preparing the ledger"):
        refs.drop_mark(layout, f"{layout.git}/config.lock")  # a killed process may have left it
        origin = origin_of(layout)
        if origin is not None and journal.generations(layout) and _has_mark(layout):
            return origin
        _make_private(layout)
        from agent_chatroom_ledger.storage.locks import holding

        with holding(layout.locks / "prepare.lock"):
            origin = origin_of(layout)
            if origin is None:
                origin = mint_origin(_host_name(), os.urandom(8))
                _note_origin(layout, origin)
            if not journal.generations(layout):
                _first_generation(layout, objects, origin)
    return origin


def _has_mark(layout: Layout) -> bool:
    return os.path.exists(layout.own_mark) and layout.tmp.is_dir() and layout.quarantine.is_dir()


def _first_generation(layout: Layout, objects: Objects, origin: str) -> None:
    from agent_chatroom_ledger.storage.history import ledgers_time  # once in a clone's life

    refs.require_head_on_main(layout)
    base = refs.read_main(layout)
    own = journal.Journal(layout)
    with own.lock:
        header = Header(
            generation=1,
            base=base,
            newest_at=ledgers_time(objects, base),
            last_frame=0,
            commit_format=1,
            origin=origin,
        )
        own.start(header, ())
        write_state(layout, State(base, 0, files.boot_id()))
    own.close()
