"""``socket`` makes a method of a service one that speaks with each caller through a WebSocket.

It is a mounted server like any other: an ASGI application at the path of the method.
"""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, overload

from .executable import RequestHead, ServiceError
from .heads import CallRequest
from .mounts import Mount
from .options import Size, byte_count
from .unknown import known_options

DEFAULT_MESSAGE_BYTES = 1024**2
MAX_MESSAGE_BYTES = 16 * 1024**2
MAX_REASON_BYTES = 123
"""What a close frame has place for (RFC 6455, section 5.5)."""
_NORMAL = 1000
_FAILED = 1011

_Function = Callable[[Any, "SocketContext"], Awaitable[None]]


class Socket:
    """The WebSocket of one caller: ``async for message in socket`` reads it until they leave.

    A message is ``str`` or ``bytes``, as it was sent. ``await anext(socket)`` reads one.
    """

    __slots__ = ("_ended", "_receive", "_send")

    def __init__(self, receive: Any, send: Any) -> None:
        self._receive = receive
        self._send = send
        self._ended = False

    @property
    def closed(self) -> bool:
        """True once it was closed, or a read or ``send`` has found that the caller has left."""
        return self._ended

    def __aiter__(self) -> Socket:
        return self

    async def __anext__(self) -> str | bytes:
        if self._ended:
            raise StopAsyncIteration
        event = await self._receive()
        if event["type"] == "websocket.disconnect":
            self._ended = True
            raise StopAsyncIteration
        text: str | None = event.get("text")
        content: bytes = event.get("bytes") or b""
        return content if text is None else text

    async def send(self, message: str | bytes | bytearray | memoryview) -> None:
        """Sends a message, and waits while the caller reads more slowly than that.

        Raises ``ConnectionError`` once the WebSocket is closed, which needs no handling.
        """
        if isinstance(message, str):
            content: dict[str, Any] = {"text": message}
        elif isinstance(message, (bytes, bytearray, memoryview)):
            content = {"bytes": bytes(message)}
        else:
            raise TypeError(f"a message is str or bytes, not {type(message).__name__}")
        if self._ended:
            raise ConnectionError("the WebSocket is closed")
        try:
            await self._send({"type": "websocket.send", **content})
        except (OSError, RuntimeError) as error:  # How uvicorn says that it has ended.
            self._ended = True
            raise ConnectionError("the WebSocket is closed") from error

    async def close(self, code: int = _NORMAL, reason: str = "") -> None:
        """Closes it: 1000, 1001, 1003, 1007 to 1014, or 3000 to 4999, and at most 123 bytes."""
        if not _is_close_code(code):
            raise ValueError(
                f"{code!r} closes no WebSocket: take 1000, 1001, 1003, 1007 to 1014, or 3000 to "
                "4999, which are for applications"
            )
        if not isinstance(reason, str) or len(reason.encode()) > MAX_REASON_BYTES:
            raise ValueError(f"the reason must be a text of at most {MAX_REASON_BYTES} bytes")
        if self._ended:
            return
        self._ended = True
        # The caller may be faster.
        with contextlib.suppress(OSError, RuntimeError):
            await self._send({"type": "websocket.close", "code": code, "reason": reason})


def _is_close_code(code: object) -> bool:
    return (
        isinstance(code, int)
        and not isinstance(code, bool)
        and (code in (1000, 1001, 1003) or 1007 <= code <= 1014 or 3000 <= code <= 4999)
    )


class SocketContext:
    """What a method with ``@socket`` is given."""

    __slots__ = ("request", "socket")

    def __init__(self, request: CallRequest, socket: Socket) -> None:
        self.request = request
        """The request that opened the WebSocket, with all its headers that servers are shown."""
        self.socket = socket


class SocketMount(Mount):
    """A method that speaks through WebSockets, as ``socket`` returns it."""

    def __init__(
        self,
        function: _Function,
        *,
        route: str | None,
        concurrency: int | None,
        concurrency_per_key: int | None,
        rate_per_key: str | None,
        max_message: Size | None,
    ) -> None:
        super().__init__(
            f"/{function.__name__}" if route is None else route,
            None,
            program={},
            timeout=None,
            concurrency=concurrency,
            concurrency_per_key=concurrency_per_key,
            rate_per_key=rate_per_key,
            queue=False,
            metrics=None,
            openapi=False,
        )
        at = f"@socket {function.__name__}"
        size = DEFAULT_MESSAGE_BYTES if max_message is None else max_message
        self.max_message = byte_count(size, at, "max_message", MAX_MESSAGE_BYTES)
        self.method = lambda instance: _application(function, instance, self.path)


@overload
def socket(function: _Function, /) -> SocketMount: ...
@overload
def socket(
    *,
    route: str | None = None,
    concurrency: int | None = None,
    concurrency_per_key: int | None = None,
    rate_per_key: str | None = None,
    max_message: Size | None = None,
) -> Callable[[_Function], SocketMount]: ...
@known_options("@socket")
def socket(
    function: Any = None,
    /,
    *,
    route: str | None = None,
    concurrency: int | None = None,
    concurrency_per_key: int | None = None,
    rate_per_key: str | None = None,
    max_message: Size | None = None,
) -> Any:
    """Marks a method that speaks with each caller through a WebSocket::

        @socket
        async def live(self, ctx: SocketContext) -> None:
            async for message in ctx.socket:
                await ctx.socket.send(message)

    The loop ends when the caller has left. The end of the method closes the WebSocket with the
    code 1000, an exception with 1011, and the end of the worker with 1012. It runs in uvicorn,
    which the environment of the service has to have with its WebSockets: ``uvicorn[standard]``.

    - ``route``: its path, such as ``"/v1/live"``. Default: the name of the method, ``/live``.
    - ``concurrency``: how many WebSockets one worker has at a time, at most 10,000. Default: 100.
    - ``concurrency_per_key``: the WebSockets of one key (the header ``Tessera-Key``, or the
      caller's token) on a node, from 1 to 10,000. ``rate_per_key``: those that are opened on a
      node in a time, such as ``"10/min"``, with as many at once. More are refused. Default: any
      number.
    - ``max_message``: what a message of a caller may have, in bytes or as ``"4MiB"``, at most
      16 MiB; a longer one closes the WebSocket with 1009. Default: 1 MiB.
    """

    def decorate(method: Any) -> SocketMount:
        name = getattr(method, "__name__", repr(method))
        if not inspect.iscoroutinefunction(method) or not _takes_context(method):
            raise ServiceError(f"@socket {name}: it must be a method `async def {name}(self, ctx)`")
        return SocketMount(
            method,
            route=route,
            concurrency=concurrency,
            concurrency_per_key=concurrency_per_key,
            rate_per_key=rate_per_key,
            max_message=max_message,
        )

    return decorate if function is None else decorate(function)


def _takes_context(method: Callable[..., Any]) -> bool:
    try:
        inspect.signature(method).bind(None, None)
    except TypeError:
        return False
    return True


def _application(function: _Function, instance: Any, path: str) -> Any:
    async def application(scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        is_socket = scope["type"] == "websocket"
        is_there = scope["path"] == path
        if not is_socket or not is_there:
            kind = "websocket.http.response" if is_socket else "http.response"
            await (_ask_for_socket if is_there else _refuse_path)(send, kind, path)
            return
        await receive()
        await send({"type": "websocket.accept"})
        opened = Socket(receive, send)
        code = _NORMAL
        try:
            await function(instance, SocketContext(_request(scope), opened))
        except Exception as error:
            if not (opened.closed and isinstance(error, ConnectionError)):
                traceback.print_exc()
            code = _FAILED
        await opened.close(code)

    return application


async def _ask_for_socket(send: Any, kind: str, path: str) -> None:
    headers = [(b"upgrade", b"websocket")]
    await _answer(send, kind, 426, f"{path} is a WebSocket: open it as one, at wss://.\n", headers)


async def _refuse_path(send: Any, kind: str, path: str) -> None:
    await _answer(send, kind, 404, f"Nothing is here: the WebSocket is at {path}.\n", [])


async def _answer(
    send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    kind: str,
    status: int,
    text: str,
    headers: list[tuple[bytes, bytes]],
) -> None:
    body = text.encode()
    about = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
    ]
    await send({"type": f"{kind}.start", "status": status, "headers": [*about, *headers]})
    await send({"type": f"{kind}.body", "body": body})


def _request(scope: Mapping[str, Any]) -> CallRequest:
    headers = [
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
    ]
    host = dict(headers).get("host", "localhost")
    query = scope["query_string"].decode("latin-1")
    url = f"{scope['scheme']}://{host}{scope['raw_path'].decode('latin-1')}"
    client = scope.get("client")
    return CallRequest(
        RequestHead(
            method="GET",
            url=f"{url}?{query}" if query else url,
            headers=headers,
            client=client[0] if client else None,
        )
    )
