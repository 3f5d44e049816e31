"""Who speaks through the server: one agent for each client, found anew at every call."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

import msgspec

from agent_chatroom_ledger.mcp.exchange import Answers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agent_chatroom_ledger.agents import Agent
    from agent_chatroom_ledger.domain.identities import Client, Identity
    from agent_chatroom_ledger.ledger import Ledger

_CLIENT_CHARS: Final = 64
# For so long after its first call a server looks for others of its client.
_SEATING_SECONDS: Final = 10.0


class ClientInfo(NamedTuple):
    """What a client says of itself when it connects."""

    name: str
    version: str


class Speaker(Protocol):
    """Who speaks in an exchange."""

    answers: Answers

    def agent(self, said: ClientInfo | None, *, joins: bool = False) -> Agent:
        """Return the agent, as its name is now; raises a LedgerError when there is no ledger."""

    def client(self) -> Client | None:
        """Return where the agent lives, as far as it is known."""

    def notes(self) -> list[str]:
        """Return what the agent should know of its own name."""

    def close(self) -> None:
        """Take the agent off the list of those who are here."""


class House:
    """The ledger that a server serves, opened when it is first asked for.

    So the server answers at once, and a client that was started before there was a ledger finds
    it as soon as there is one.
    """

    def __init__(self, opener: Callable[[], Ledger]) -> None:
        """Take what opens the ledger, or raises a LedgerError that says how to get one."""
        self._opener = opener
        self._ledger: Ledger | None = None
        self._lock = threading.Lock()

    def ledger(self) -> Ledger:
        """Return the ledger."""
        with self._lock:
            if self._ledger is None:
                self._ledger = self._opener()
            return self._ledger

    def close(self) -> None:
        """Close the ledger, if it was ever opened."""
        with self._lock:
            if self._ledger is not None:
                self._ledger.close()
                self._ledger = None


class OwnSpeaker:
    """The agent whose client started this process, or who started this server."""

    def __init__(
        self,
        house: House,
        environment: Mapping[str, str],
        directory: str,
        *,
        explicit: str | None = None,
        of_client: bool = True,
    ) -> None:
        """``explicit`` is a name that was given; with ``of_client`` the client is an ancestor.

        Otherwise the agent lives in this very process, as in a server over HTTP.
        """
        self.answers = Answers()
        self._house = house
        self._environment = environment
        self._directory = directory
        self._explicit = explicit
        self._of_client = of_client
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._told = False
        self._begun = 0.0
        self._identity: Identity | None = None
        self._agent: Agent | None = None
        self._session: str | None = None

    def agent(self, said: ClientInfo | None, *, joins: bool = False) -> Agent:
        """Return the agent as it is called now: pins are read, and the name claimed, every time.

        So is its session, which counts what is sent: hooks and commands tell of the same one.

        Where the settings say `auto_join = false` only a call that ``joins`` claims it.
        """
        from agent_chatroom_ledger.identity import identify, session_of_client

        ledger = self._house.ledger()
        with self._lock:
            client = self._client_of(ledger, said)
            claim = joins or ledger.settings.auto_join
            identity = identify(ledger, self._environment, client, self._explicit, claim=claim)
            self._identity = identity
            session = session_of_client(ledger, client)
            now = (identity.name, session)
            if self._agent is None or (self._agent.name, self._session) != now:
                self._agent = ledger.agent(identity.name, session=session, door="mcp")
                self._session = session
            return self._agent

    def client(self) -> Client | None:
        """Return the client that the agent lives in, once it was looked for."""
        return self._client

    def notes(self) -> list[str]:
        """Return why the agent is not called as one might think."""
        identity = self._identity
        if identity is None:
            return []
        notes = list(identity.warnings)
        if identity.name != identity.base:
            notes.append(f"{identity.base} is held by somebody else who is running.")
        return notes

    def close(self) -> None:
        """Take this door of the agent off the list of those who are here."""
        from agent_chatroom_ledger.presence import release

        with self._lock:
            if self._identity is not None and self._identity.held and self._client is not None:
                release(self._house.ledger(), self._client)
                self._identity = None

    def _client_of(self, ledger: Ledger, said: ClientInfo | None) -> Client:
        if self._client is None:
            self._client = self._found()
            self._begun = time.monotonic()
        if time.monotonic() < self._begun + _SEATING_SECONDS:
            self._sit(ledger, self._client)
        if said is not None and not self._told:
            self._told = True
            from agent_chatroom_ledger.domain.clientprograms import KNOWN

            # The program is what it is; what it says of itself names one that we do not know.
            if self._of_client and self._client.name not in KNOWN:
                self._client = msgspec.structs.replace(self._client, name=known_as(said.name))
        return self._client

    def _sit(self, ledger: Ledger, client: Client) -> None:
        """Take a seat of its own where the client runs a server of another name as well.

        One client is one agent. But a program may run several, each with a server of its own whose
        environment names it; if they shared an entry, each would take over the other's name, and
        be handed what goes to it. Servers that start at the same moment find out a little later.
        """
        from agent_chatroom_ledger.domain.identities import SPOKEN, spoken_name
        from agent_chatroom_ledger.presence import release, who

        spoken = self._explicit or (spoken_name(self._environment) or ("",))[0]
        if not spoken or client.process is None or client.seat:
            return
        pid = client.process.pid
        others = [
            one
            for one in who(ledger)
            if one.process == pid and one.source in SPOKEN and "mcp" in one.doors
        ]
        if not others or any(
            one.name == spoken or one.name.startswith(f"{spoken}-{pid}") for one in others
        ):
            return
        if self._identity is not None and self._identity.held:
            release(ledger, client)
        self._client = msgspec.structs.replace(client, seat=f"mcp:{spoken}")

    def _found(self) -> Client:
        if self._of_client:
            from agent_chatroom_ledger.identity import find_client

            return find_client(self._environment, self._directory, door="mcp")
        from agent_chatroom_ledger.domain.identities import Client, pane_of
        from agent_chatroom_ledger.identity import seated

        return seated(
            Client(
                name="rooms mcp --http",
                directory=self._directory,
                pane=pane_of(self._environment),
                door="mcp",
                seat="http",
            )
        )


class NamedSpeaker:
    """An agent whose name is given for good: the one that a token binds."""

    def __init__(self, house: House, name: str) -> None:
        """Name the agent; nothing is opened yet."""
        self.answers = Answers()
        self.name = name
        self._house = house
        self._lock = threading.Lock()
        self._agent: Agent | None = None
        self._client: Client | None = None

    def agent(self, said: ClientInfo | None, *, joins: bool = False) -> Agent:
        """Return the agent; it is listed as here unless another client lives under its name."""
        ledger = self._house.ledger()
        with self._lock:
            if self._agent is None:
                self._agent = ledger.agent(self.name, door="mcp")
            if self._client is None and (joins or ledger.settings.auto_join):
                self._claim(ledger, said)
            return self._agent

    def client(self) -> Client | None:
        """Return the seat of this process that the agent has, once it was claimed."""
        return self._client

    def notes(self) -> list[str]:
        """Return nothing: the name is as it was given."""
        return []

    def close(self) -> None:
        """Take the agent off the list of those who are here."""
        from agent_chatroom_ledger.presence import release

        with self._lock:
            if self._client is not None:
                release(self._house.ledger(), self._client)
                self._client = None

    def _claim(self, ledger: Ledger, said: ClientInfo | None) -> None:
        from agent_chatroom_ledger.domain.identities import Client
        from agent_chatroom_ledger.identity import identify, seated
        from agent_chatroom_ledger.presence import live

        if live(ledger, self.name) is None:
            name = "" if said is None else known_as(said.name)
            client = seated(Client(name=name, door="mcp", seat=f"http:{self.name}"))
            identify(ledger, {}, client, self.name, claim=True)
            self._client = client


def known_as(name: str) -> str:
    """Return what a client calls itself, short and visible whatever it sends."""
    plain = "".join(char if char.isprintable() else "?" for char in name.strip())
    return plain[:_CLIENT_CHARS] or "unnamed"
