"""One request and the way of its answer: what it hands over is noted once the answer is out.

The transport makes an exchange for each request and settles it: `settle(written=True)` after the
answer was written and flushed, `written=False` when it will never be. In between, the messages that
the answer holds are held too, so that no other door hands them over as well.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Final

from agent_chatroom_ledger.errors import LedgerError

if TYPE_CHECKING:
    from agent_chatroom_ledger.inbox import Handover
    from agent_chatroom_ledger.mcp.speakers import Speaker

# Under this key a request over HTTP carries its exchange.
SCOPE_KEY: Final = "agent_chatroom_ledger.exchange"
_SETTLING_SECONDS_MAX: Final = 5.0

_log = logging.getLogger("agent_chatroom_ledger.mcp")


class Exchange:
    """A request of one speaker, from its arrival until its answer is out or given up."""

    def __init__(self, speaker: Speaker) -> None:
        """Name who speaks."""
        self.speaker = speaker
        # Whether nobody waits for the answer any more; a wait looks at it.
        self.is_given_up = False
        self._lock = threading.Lock()
        self._held: Handover | None = None
        self._settled = False

    def hold(self, handover: Handover) -> None:
        """Keep what the answer hands over until the exchange is settled."""
        with self._lock:
            if not self._settled:
                assert self._held is None, "one answer hands over once"
                self._held = handover
                return
        handover.close()

    def give_up(self) -> None:
        """Say that nobody waits for the answer any more. A signal's handler may say so as well.

        So no lock is taken here: the handler may run amid a call of this on the same thread.
        """
        self.is_given_up = True

    def leaving(self) -> None:
        """Say that the answer is about to be written: the speaker's next call waits for its end."""
        if self._held is not None:
            self.speaker.answers.start(self)

    def settle(self, *, written: bool) -> None:
        """Note what was handed over, or let go of it; doing so twice is harmless. May block.

        A receipt that cannot be written is reported in the log: the messages are then handed over
        again, and nothing is lost.
        """
        with self._lock:
            self._settled = True
            held, self._held = self._held, None
        if not written:
            self.give_up()
        try:
            if held is not None and written:
                held.confirm()
        except (LedgerError, OSError):
            _log.exception("receipts could not be written; the messages will come again")
        finally:
            if held is not None:
                held.close()
            self.speaker.answers.end(self)


class Answers:
    """The answers of one speaker that hand something over and are on their way out."""

    def __init__(self) -> None:
        """Begin with none."""
        self._out: set[Exchange] = set()
        self._changed = threading.Condition()

    def start(self, exchange: Exchange) -> None:
        """Count an answer among those on their way."""
        with self._changed:
            self._out.add(exchange)

    def end(self, exchange: Exchange) -> None:
        """Count it no more."""
        with self._changed:
            self._out.discard(exchange)
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until what was handed over is noted, so that the next call finds it noted."""
        with self._changed:
            self._changed.wait_for(lambda: not self._out, _SETTLING_SECONDS_MAX)
