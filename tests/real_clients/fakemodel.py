"""A model on the loopback interface that says what the test tells it to, and keeps what it heard.

It speaks as much of Anthropic's Messages API, OpenAI's Responses API and Google's Gemini API as the
clients need: streamed answers of a text or of one tool call.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WAIT_SECONDS_MAX = 60


@dataclass(frozen=True)
class Say:
    """An answer: words, and the turn is over."""

    text: str


@dataclass(frozen=True)
class Use:
    """An answer: one call of a tool."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Heard:
    """One request for an answer: its path and its document."""

    path: str
    document: dict[str, Any]

    @property
    def tools(self) -> list[str]:
        """The names of the tools that the client offers; those of a namespace behind its name."""
        names = []
        for tool in self.document.get("tools", []):
            name = tool.get("name", tool.get("type", ""))
            parts = tool.get("tools", tool.get("functionDeclarations", []))
            inner = [part.get("name", "") for part in parts]
            names += [f"{name}{part}" for part in inner] if inner else [name]
        return names

    @property
    def text(self) -> str:
        """Everything that is said in the request, without the escapes of JSON around it."""
        return "\n".join(_strings(self.document))


Answer = Say | Use


class FakeModel:
    """All APIs on a free port; `answer` decides on each request, `heard` keeps them all."""

    def __init__(self, answer: Callable[[Heard], Answer]) -> None:
        self.answer = answer
        self.heard: list[Heard] = []
        self.failed: list[BaseException] = []
        self._news = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait_for(self, wanted: Callable[[list[Heard]], bool], seconds: float) -> bool:
        """Wait until what was heard is as wanted; False when the time is over."""
        with self._news:
            return self._news.wait_for(lambda: wanted(self.heard), seconds)

    def reply(self, path: str, document: dict[str, Any]) -> Answer:
        """Keep a request and decide on its answer."""
        heard = Heard(path, document)
        try:
            answer = self.answer(heard)
        except BaseException as error:
            self.failed.append(error)
            raise
        with self._news:
            self.heard.append(heard)
            self._news.notify_all()
        return answer


def _handler(model: FakeModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(size)
            path = self.path.split("?")[0]
            if path == "/v1/messages":
                document = json.loads(body)
                self._stream(_messages(model.reply(path, document)), document)
            elif path == "/v1/responses":
                document = json.loads(body)
                self._stream(_responses(model.reply(path, document)), document)
            elif path.lower().endswith("generatecontent"):
                content = _gemini(model.reply(path, json.loads(body)))
                if ":stream" in path:
                    event = f"data: {json.dumps(content)}\r\n\r\n"
                    self._send(200, "text/event-stream", event.encode())
                else:
                    self._send(200, "application/json", json.dumps(content).encode())
            elif path.endswith(":countTokens"):
                self._send(200, "application/json", b'{"totalTokens": 10}')
            elif path == "/v1/messages/count_tokens":
                self._send(200, "application/json", b'{"input_tokens": 10}')
            else:
                self._send(404, "application/json", b'{"error": {"message": "not here"}}')

        def do_GET(self) -> None:
            self._send(404, "application/json", b'{"error": {"message": "not here"}}')

        do_HEAD = do_GET  # noqa: N815 - the standard library's name

        def _stream(self, events: Iterator[dict[str, Any]], document: dict[str, Any]) -> None:
            parts = list(events)
            if document.get("stream"):
                lines = [f"event: {part['type']}\ndata: {json.dumps(part)}\n\n" for part in parts]
                self._send(200, "text/event-stream", "".join(lines).encode())
            else:
                self._send(200, "application/json", json.dumps(_whole(parts)).encode())

        def _send(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *words: object) -> None:
            del words

    return Handler


def _messages(answer: Answer) -> Iterator[dict[str, Any]]:
    """Yield the events of an answer of Anthropic's Messages API."""
    usage = {"input_tokens": 10, "output_tokens": 5}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake"}
    start = {**message, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": start}
    if isinstance(answer, Say):
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": answer.text}
        reason = "end_turn"
    else:
        identity = f"toolu_{abs(hash((answer.tool, json.dumps(answer.arguments)))):x}"
        block = {"type": "tool_use", "id": identity, "name": answer.tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
        reason = "tool_use"
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": usage}
    yield {"type": "message_stop"}


def _whole(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the document of an answer that is not streamed."""
    if parts[0]["type"] != "message_start":
        response: dict[str, Any] = parts[-1]["response"]
        return response
    block = dict(parts[1]["content_block"])
    delta = parts[2]["delta"]
    if block["type"] == "text":
        block["text"] = delta["text"]
    else:
        block["input"] = json.loads(delta["partial_json"])
    stop = parts[-2]["delta"]
    return {**parts[0]["message"], "content": [block], **stop}


def _responses(answer: Answer) -> Iterator[dict[str, Any]]:
    """Yield the events of an answer of OpenAI's Responses API."""
    if isinstance(answer, Say):
        content = [{"type": "output_text", "text": answer.text, "annotations": []}]
        item: dict[str, Any] = {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    else:
        namespace, _, name = answer.tool.rpartition("/")
        item = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": f"call_{abs(hash((answer.tool, json.dumps(answer.arguments)))):x}",
            "name": name,
            "arguments": json.dumps(answer.arguments),
        }
        if namespace:
            item["namespace"] = namespace
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": response}
    yield {"type": "response.output_item.added", "output_index": 0, "item": item}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    done = {**response, "status": "completed", "output": [item], "usage": usage}
    yield {"type": "response.completed", "response": done}


def _gemini(answer: Answer) -> dict[str, Any]:
    """Return the one piece of an answer of Google's Gemini API."""
    if isinstance(answer, Say):
        part: dict[str, Any] = {"text": answer.text}
    else:
        part = {"functionCall": {"name": answer.tool, "args": answer.arguments}}
    content = {"role": "model", "parts": [part]}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": "fake",
        "responseId": "1",
    }


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
