"""Frames become commits: one pack for a batch, main moved by compare-and-swap (docs/design.md 4).

Commits are in the journal's order, so that no cause comes after its effect (invariant 10).

Whoever holds the commit lock commits everybody's frames. Recovery is this same path.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import msgspec

from agent_chatroom_ledger import limits
from agent_chatroom_ledger.domain.frames import encode_frame
from agent_chatroom_ledger.errors import Busy, Corrupt, LedgerError
from agent_chatroom_ledger.storage import failpoints, files, packlist, packmerge, packs, refs
from agent_chatroom_ledger.storage.checkpoint import Checkpoint
from agent_chatroom_ledger.storage.commits import CommitBuilder, batches
from agent_chatroom_ledger.storage.locks import FileLock
from agent_chatroom_ledger.storage.packs import PackBuilder
from agent_chatroom_ledger.storage.recovery import locate
from agent_chatroom_ledger.storage.state import State, StateFile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_chatroom_ledger.domain.frames import Frame
    from agent_chatroom_ledger.storage.intake import Intake
    from agent_chatroom_ledger.storage.journal import Journal
    from agent_chatroom_ledger.storage.layout import Layout
    from agent_chatroom_ledger.storage.objects import Objects
    from agent_chatroom_ledger.storage.present import Present

INDEX_LOCK_WAIT_SECONDS_MAX = 1.0
INDEX_LOCK_HELD_SECONDS_MAX = 3.0
PATIENCE_SECONDS = 0.005
_ROUNDS_MAX = 3
_SWAPS_MAX = 50


class Committer:
    """The holder of the commit lock: commits what is pending, and makes checkpoints."""

    def __init__(
        self, layout: Layout, objects: Objects, journal: Journal, intake: Intake, present: Present
    ) -> None:
        """Share the journal and its frames with the writer."""
        self.layout = layout
        self.objects = objects
        self.journal = journal
        self.intake = intake
        self.present = present
        self.lock = FileLock(layout.locks / "commit.lock")
        self.builder = CommitBuilder(objects, present.origin)
        self.boot = files.boot_id()
        self._index_lock = f"{layout.git}/index.lock"
        self._index_locked_at = 0.0
        # Main holds commits that no frame made, and the work tree does not show them yet.
        self.met_foreign = False
        # Rooms that the last checkpoint left without their views: it stood on a foreign tip.
        self.views_owed: dict[str, None] = {}
        self._packs_since_merge = 0
        self._committed = 0
        self._written = 0
        self.problem: Exception | None = None
        self._state = StateFile(layout)
        self._own_packs = packlist.Notes(layout)
        self._marks = refs.Marks(layout)

    def close(self) -> None:
        """Close the files."""
        self.lock.close()
        self._state.close()
        self._own_packs.close()

    def done(self, frame: int) -> bool:
        """Tell whether main holds a frame, by the hint alone."""
        state = self._state.read()
        return state is not None and state.frame >= frame and state.boot == self.boot

    def hinted(self) -> int:
        """Return the last frame that main is known to hold, by the hint alone."""
        state = self._state.read()
        return 0 if state is None else state.frame

    def require_writable_main(self) -> None:
        """Raise Conflict or Corrupt before anything is written to a rewound or damaged main.

        Main is what the hint says, or somebody used git by hand: then the commit path judges.
        """
        self._marks.require_head_on_main()
        if self._main_is_hinted() or not self.lock.acquire(unless=self._main_is_hinted):
            return
        try:
            # A holder of git's locks is no reason to refuse: the frame can wait for its commit.
            with contextlib.suppress(Busy), files.clear_errors("looking at main"):
                self.commit_locked()
            state = self._state.read()
            if state is not None and not self._is_written(state.frame):
                raise Busy(
                    "the end of the journal is damaged, and another program holds the lock of "
                    f"git's index, {self._index_lock}; nothing is written before main was asked",
                    code="git_locked",
                    path=self._index_lock,
                )
        finally:
            self.lock.release()

    def _main_is_hinted(self) -> bool:
        state = self._state.read()
        # A hint from before a boot says nothing of what a power cut has left: nothing is appended
        # behind that before recovery has looked at it.
        return (
            state is not None
            and state.boot == self.boot
            and self._main_is(state.main)
            and self._is_written(state.frame)
        )

    def _is_written(self, frame: int) -> bool:
        """Tell whether the journal reaches as far as main: its end may have been damaged.

        That looks like a torn tail. Then main judges, or numbers that it has would be given again.
        """
        if frame > self._written:
            self.intake.refresh()
            self._written = self.intake.last_frame
        return frame <= self._written

    def _main_is(self, commit: str) -> bool:
        try:
            return self._marks.main_names(commit)
        except Corrupt:
            return False  # a power cut may have left zeros: recovery judges

    def commit(self, through: int) -> None:
        """Commit every pending frame; somebody else may do it first.

        Raises Busy while another program holds git's locks: frames stay in the journal.
        """
        # Whoever committed last has the tip in memory, and commits what others have appended for
        # half the price: while the lock is held, the others leave it to him for a moment.
        state = self._state.read()
        warm = state is not None and state.main == self.builder.tip
        patience = 0.0 if warm else PATIENCE_SECONDS
        if not self.lock.acquire(unless=lambda: self.done(through), patience=patience):
            return
        try:
            for _ in range(_ROUNDS_MAX):
                committed = self.commit_locked()
                self.intake.refresh()
                # What others have appended meanwhile would wait for their own turn. But a
                # generation is held in memory: under a steady load it ends all the same.
                if self.intake.last_frame <= committed or self._checkpoint_is_due():
                    break
            if self._checkpoint_is_due():
                self._try(self._checkpoint_of_committed)
        finally:
            self.lock.release()

    def _try(self, work: Callable[[], None]) -> None:
        """Do what a commit does not depend on; it is tried again, and flush says what is wrong."""
        try:
            work()
            self.problem = None
        except (LedgerError, OSError) as error:
            self.problem = error

    def checkpoint(
        self, views: Sequence[str] = (), unless: Callable[[], bool] | None = None
    ) -> bool:
        """Commit what is pending, bring views, work tree and index up to date, make all durable.

        Does nothing when nothing happened since the last checkpoint, but for the views named.
        False when `unless()` became true while somebody else held the lock.
        """
        if not self.lock.acquire(unless=unless):
            return False
        try:
            self.checkpoint_locked(views)
        finally:
            self.lock.release()
        return True

    def _checkpoint_is_due(self) -> bool:
        header = self.intake.header
        if self.intake.last_frame - header.last_frame >= limits.CHECKPOINT_FRAMES_MAX:
            return True
        held = time.monotonic() - self._index_locked_at
        return self._index_locked_at > 0 and held > INDEX_LOCK_HELD_SECONDS_MAX

    def checkpoint_locked(self, views: Sequence[str] = ()) -> None:
        """Make a checkpoint; the commit lock is held."""
        self.commit_locked()
        self._checkpoint_of_committed(views)

    def _checkpoint_of_committed(self, views: Sequence[str] = ()) -> None:
        """Make a checkpoint of what was committed just now; what came since is carried over."""
        Checkpoint(self).run(views)
        self._index_locked_at = 0.0

    def commit_locked(self, *, checkpoint_foreign: bool = True, through: int | None = None) -> int:
        """Commit every pending frame, or those up to `through`; the commit lock is held.

        Returns the last frame committed.
        """
        self.intake.refresh()
        self._marks.require_head_on_main()
        hopeful = self.intake.last_frame > self._committed
        committed = self._settle(checkpoint_foreign=checkpoint_foreign, hopeful=hopeful)
        frames = self._pending(committed, through)
        if not frames:
            return committed
        self.make_durable()
        failpoints.reach("commit.synced")
        self.take_index_lock()
        for _ in range(_SWAPS_MAX):
            for batch in batches(frames):
                if not self._commit_batch(batch):
                    break
                committed = batch[-1].frame
            else:
                return committed
            # Somebody has moved main by hand: judge what is there now and build on it.
            committed = self._settle(checkpoint_foreign=checkpoint_foreign)
            frames = self._pending(committed, through)
            self.make_durable()
        raise Busy(
            "main is being moved by another program faster than we can build on it",
            code="lost_races",
        )

    def _pending(self, committed: int, through: int | None) -> list[Frame]:
        frames = self.intake.after(committed)
        return frames if through is None else [f for f in frames if f.frame <= through]

    def make_durable(self) -> None:
        """Sync the journal; when the disk refuses, write what it held anew, and sync that.

        A file whose sync failed is never synced again: the next time the system would say that all
        is well, whatever it has dropped. The frames are in memory still. Raises Busy (code
        `sync_failed`) when the disk takes them nowhere.
        """
        try:
            self.journal.sync(self.intake.generation)
        except Busy:
            with files.clear_errors("writing the journal anew"), self.journal.lock:
                self.leave_failed_generation()

    def leave_failed_generation(self) -> None:
        """Copy a generation that the disk refused to sync; the journal's lock is held."""
        self.intake.refresh()
        self.journal.settle()
        if not self.journal.failed():
            return
        header = self.intake.header
        self.journal.start(
            msgspec.structs.replace(header, generation=header.generation + 1),
            [encode_frame(frame) for frame in self.intake.frames],
        )
        self.intake.refresh()

    def _settle(self, *, checkpoint_foreign: bool, hopeful: bool = False) -> int:
        """Let the builder stand on main; return the last frame that main has.

        `hopeful` leaves it to the swap to notice that somebody else has moved main.
        """
        # Commits carry the origin of the generation: a copied ledger replays what it was.
        self.builder.origin = self.intake.header.origin
        state = self._state.read()
        known = state is not None and self._is_written(state.frame)
        if state is not None and known and state.boot == self.boot:
            # When the hint names the tip we built last, moving main will tell if it is true.
            if hopeful and state.main == self.builder.tip:
                self._committed = state.frame
                return state.frame
            if self._main_is(state.main):
                if self.builder.tip != state.main:
                    self.builder.start(state.main)
                self._committed = state.frame
                return state.frame
        self.builder.forget()
        found = locate(self, state)
        self.remember(found.frame)
        self.met_foreign = self.met_foreign or found.foreign
        if found.foreign and checkpoint_foreign:
            # Nothing is built on a foreign tip before it is durable: a replay after a power cut
            # has to begin on it.
            self.take_index_lock()
            Checkpoint(self).run((), views_too=False)
        return found.frame

    def remember(self, frame: int) -> None:
        """Write the hint: main is the builder's tip and has every frame up to `frame`."""
        self._committed = frame
        self._state.write(State(self.builder.tip, frame, self.boot))

    def committed(self) -> int:
        """Return the last frame that the builder's tip holds."""
        return self._committed

    def take_index_lock(self) -> None:
        """Keep git's index locked from before main moves until the index matches it."""
        adopted = self._marks.take(self._index_lock, INDEX_LOCK_WAIT_SECONDS_MAX)
        if not adopted or not self._index_locked_at:
            self._index_locked_at = time.monotonic()
        failpoints.reach("commit.index_locked")

    def _commit_batch(self, batch: Sequence[Frame]) -> bool:
        """Build the commits of some frames on the tip; False when main was moved meanwhile."""
        before = self.builder.tip
        pack = PackBuilder()
        try:
            for frame in batch:
                self.builder.add(frame, pack)
        except BaseException:
            self.builder.forget()
            raise
        failpoints.reach("commit.built")
        after = self.builder.tip
        if after != before and not self.publish(before, after, pack):
            self.builder.forget()
            return False
        self._written = max(self._written, batch[-1].frame)
        self.remember(batch[-1].frame)
        failpoints.reach("commit.remembered")
        self._merge_packs()
        self.builder.lighten()
        return True

    def publish(self, before: str, after: str, pack: PackBuilder) -> bool:
        """Store a pack and move main onto its tip; False when main is not `before` any more."""
        try:
            name, data, index = pack.finish()
            with files.clear_errors("writing a pack"):
                self._own_packs.note(name, pack.commits)
                placed = packs.store(self.layout, name, data, index)
            failpoints.reach("commit.stored")
            with files.clear_errors("moving main"):
                moved = self._marks.move_main(before, after)
        except BaseException:
            self.builder.forget()
            raise
        failpoints.reach("commit.moved")
        if not moved and placed:
            packs.discard(self.layout, name)
            return False
        packs.release(self.layout, (name,))
        if not moved:
            # Whoever stored this very pack may have moved main onto it before he was killed.
            return False
        self._packs_since_merge += 1
        return True

    def _merge_packs(self) -> None:
        """Merge small packs once there are some; main and the hint agree by now, so none waits."""
        if self._packs_since_merge >= packmerge.SINGLES_MAX:
            self._packs_since_merge = 0
            self._try(lambda: packmerge.merge_small_packs(self.layout))
