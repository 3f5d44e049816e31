"""The server itself: the SDK's low-level server, whose handlers call into the ledger.

The low-level one, because the SDK's convenience layer answers `resources/subscribe` with "method
not found", and because a tool list that models read should be no longer than it must be.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from agent_chatroom_ledger import __version__
from agent_chatroom_ledger.errors import InvalidInput, LedgerError
from agent_chatroom_ledger.limits import MCP_CALLS_MAX
from agent_chatroom_ledger.mcp import catalogue, wording
from agent_chatroom_ledger.mcp.answers import object_of, shown, text_of
from agent_chatroom_ledger.mcp.calls import CALLS
from agent_chatroom_ledger.mcp.exchange import SCOPE_KEY, Exchange
from agent_chatroom_ledger.mcp.failures import parsed, sentence_of
from agent_chatroom_ledger.mcp.resources import Resources
from agent_chatroom_ledger.mcp.results import WhoResult
from agent_chatroom_ledger.mcp.speakers import ClientInfo
from agent_chatroom_ledger.mcp.taking import inbox
from agent_chatroom_ledger.mcp.updates import Updates

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from anyio.abc import TaskGroup
    from mcp.server import ServerRequestContext
    from mcp.server.context import CallNext, HandlerResult

    from agent_chatroom_ledger.mcp.speakers import House, Speaker

    Context = ServerRequestContext[Any, Any]

# With these a client introduces itself, in one generation of the protocol and in the other.
_INTRODUCTIONS = frozenset({"notifications/initialized", "server/discover"})
# Calls after which the agent is one of those who are here, whatever the settings say.
_JOINING = frozenset({"rooms_create", "rooms_join", "rooms_post", "rooms_dm", "rooms_reply_all"})


class Service:
    """What is behind the handlers: the ledger, who speaks by default, and the watch for updates."""

    def __init__(self, house: House, speaker: Speaker) -> None:
        """``speaker`` is who speaks where a request does not say."""
        self.house = house
        self.speaker = speaker
        self.threads = anyio.CapacityLimiter(MCP_CALLS_MAX)
        self.updates = Updates(house, self.threads)
        self.resources = Resources(house, self.threads)
        self._background: TaskGroup

    async def list_tools(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Return the twelve tools, the same for everybody."""
        return types.ListToolsResult.model_validate({"tools": catalogue.listing()}, by_name=False)

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Call a tool. What goes wrong is an answer that tells the model what to do next."""
        exchange = _exchange_of(ctx.request)
        direct = exchange is None
        if exchange is None:
            exchange = Exchange(self.speaker)
        try:
            result = await self._called(ctx, exchange, params)
        except Exception as error:  # noqa: BLE001 - the last door: what goes wrong is an answer
            await self._settled(exchange, written=False)
            text = types.TextContent(type="text", text=sentence_of(error))
            return types.CallToolResult(content=[text], is_error=True)
        except BaseException:
            exchange.settle(written=False)
            raise
        found = object_of(result)
        if direct:
            # No transport watches this answer: returning it is handing it over.
            await self._settled(exchange, written=True)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text_of(found))],
            structured_content=shown(found),
        )

    async def _called(
        self, ctx: Context, exchange: Exchange, params: types.CallToolRequestParams
    ) -> object:
        tool = catalogue.BY_NAME.get(params.name)
        if tool is None:
            raise InvalidInput(
                f"There is no tool {params.name[:80]!r}; there are {', '.join(catalogue.BY_NAME)}."
            )
        given = parsed(tool.takes, params.arguments)
        said = _client_of(ctx)
        joins = params.name in _JOINING

        def begun() -> Any:  # noqa: ANN401 - an agent, or a call's result
            exchange.speaker.answers.wait()
            agent = exchange.speaker.agent(said, joins=joins)
            if params.name == "rooms_inbox":
                return agent
            result = CALLS[params.name](agent, given)
            if isinstance(result, WhoResult):
                result = replace(result, notes=exchange.speaker.notes())
            return result

        done = await to_thread.run_sync(begun, limiter=self.threads)
        if params.name == "rooms_inbox":
            return await inbox(done, exchange, given, self.threads)  # type: ignore[arg-type] # the tool is chosen by its name, its arguments with it
        return done

    async def _settled(self, exchange: Exchange, *, written: bool) -> None:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(lambda: exchange.settle(written=written))

    # --- presence ------------------------------------------------------------------------------

    async def arrival(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Let an agent be here as soon as its client has introduced itself.

        Where there is no ledger yet, or the settings say otherwise, it is not; a call makes up
        for it.
        """
        if ctx.method in _INTRODUCTIONS:
            exchange = _exchange_of(ctx.request)
            speaker = self.speaker if exchange is None else exchange.speaker
            self._background.start_soon(self._arrive, speaker, _client_of(ctx))
        return await call_next(ctx)

    async def _arrive(self, speaker: Speaker, said: ClientInfo | None) -> None:
        with suppress(LedgerError, OSError):
            await to_thread.run_sync(speaker.agent, said, limiter=self.threads)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do what goes on beside the requests, for as long as the block lasts."""
        async with anyio.create_task_group() as group, self.updates.watching():
            self._background = group
            yield
            group.cancel_scope.cancel()

    # --- prompt --------------------------------------------------------------------------------

    async def list_prompts(
        self, _ctx: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """Return the one prompt."""
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=wording.PROMPT_NAME,
                    title=wording.PROMPT_TITLE,
                    description=wording.PROMPT_DESCRIPTION,
                )
            ]
        )

    async def get_prompt(
        self, _ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """Return the manners of the rooms, as a message of the user."""
        if params.name != wording.PROMPT_NAME:
            raise MCPError(
                types.INVALID_PARAMS, f"There is one prompt, {wording.PROMPT_NAME}.", None
            )
        text = types.TextContent(type="text", text=wording.ETIQUETTE)
        return types.GetPromptResult(
            description=wording.PROMPT_DESCRIPTION,
            messages=[types.PromptMessage(role="user", content=text)],
        )


def build(service: Service) -> Server[Any]:
    """Return the SDK's server with every handler in its place."""

    @asynccontextmanager
    async def lifespan(_: Server[Any]) -> AsyncIterator[None]:
        async with service.running():
            yield

    resources, updates = service.resources, service.updates
    server = Server(
        wording.SERVER_NAME,
        version=__version__,
        title=wording.SERVER_TITLE,
        instructions=wording.INSTRUCTIONS,
        lifespan=lifespan,
        get_tool_input_schema=_input_schema,
        on_list_tools=service.list_tools,
        on_call_tool=service.call_tool,
        on_list_resources=_told(resources.listed),
        on_list_resource_templates=_told(resources.templates),
        on_read_resource=_told(resources.read),
        on_subscribe_resource=_told(updates.subscribe),
        on_unsubscribe_resource=_told(updates.unsubscribe),
        on_subscriptions_listen=ListenHandler(updates.bus),
        on_list_prompts=service.list_prompts,
        on_get_prompt=service.get_prompt,
    )
    server.middleware.append(service.arrival)
    return server


def _input_schema(name: str) -> dict[str, Any] | None:
    return next((one["inputSchema"] for one in catalogue.listing() if one["name"] == name), None)


def _exchange_of(request: object) -> Exchange | None:
    """Return the exchange that the transport made for a request, if it makes any."""
    if isinstance(request, Exchange):
        return request
    scope = getattr(request, "scope", None)
    found = scope.get(SCOPE_KEY) if isinstance(scope, dict) else None
    return found if isinstance(found, Exchange) else None


def _client_of(ctx: Context) -> ClientInfo | None:
    params = ctx.session.client_params
    if params is None:
        return None
    return ClientInfo(params.client_info.name, params.client_info.version)


def _told(handler: Any) -> Any:  # noqa: ANN401 - a handler of the SDK, whatever it takes
    """Let a LedgerError of a handler reach the client as an error of the protocol."""

    async def handle(ctx: Context, params: Any) -> Any:  # noqa: ANN401 - what the SDK gives to a handler and sends
        try:
            return await handler(ctx, params)
        except LedgerError as error:
            uri = getattr(params, "uri", None)
            data = {"code": error.code, **({"uri": str(uri)} if uri else {})}
            raise MCPError(types.INVALID_PARAMS, sentence_of(error), data) from None

    return handle
