"""A method of a BentoML service behind the ASGI middlewares of that service.

The node has answered HTTP before a call comes here. So middlewares see a request that is made of
the call: the path of the method, headers and query of the caller, and the arguments as JSON, in
which a file is a number. What they answer in place of the method, and what they change of its
answer, is the answer of the call. What they change of the body of the request is not read, because
the arguments were checked before.

They run on the event loop, and a synchronous method behind them in a thread.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, cast

from starlette.applications import Starlette

from ..sdk.errors import code_of_status
from ..sdk.executable import (
    CallError,
    FileResult,
    IncomingCall,
    Json,
    JsonResult,
    RequestHead,
    ResponseHead,
    Result,
    StreamResult,
)
from . import internals
from .endpoint import BentoEndpoint
from .manifest import DEFAULT_CONCURRENCY
from .requests import CallRequest, passed_state
from .results import TEXT
from .timed import Threaded

_KEY = "tessera.exchange"
"""In the scope of a request: what is made of it."""
_CHUNK_BYTES = 64 * 1024
_MAX_HELD_BYTES = 1024**2
"""Of an answer in memory; what is larger goes to disk."""
_END = object()
_JSON = "application/json"
_ENCODINGS = b"accept-encoding"
"""The node compresses answers. A middleware that did would have them compressed twice."""


class Middlewares:
    """Those of one service, around whatever a call does."""

    def __init__(self, service: Any) -> None:
        self._app = Starlette(middleware=internals.own_middleware(service))
        # Behind all of them.
        self._app.router.default = _answered

    async def around(self, exchange: _Exchange) -> None:
        """Sends a request through them."""
        try:
            await self._app(exchange.scope, exchange.receive, exchange.send)
        finally:
            exchange.over.set()


class MethodBehind:
    """One method, as the host executes it."""

    asynchronous = True

    def __init__(self, method: BentoEndpoint, middlewares: Middlewares) -> None:
        self._method = method
        self._middlewares = middlewares
        self._kind: str = method.manifest.get("stream", {}).get("pieces", "")
        self._batches = _Batches(method) if "batch" in method.manifest else None
        # Each call passes them alone, so that batches are made behind them.
        manifest = {name: value for name, value in method.manifest.items() if name != "batch"}
        self.manifest: Mapping[str, Json] = {**manifest, "request": {"headers": ["*"]}}
        if self._batches is not None:
            self.manifest = {**self.manifest, "concurrency": DEFAULT_CONCURRENCY}

    def bind(self, instance: Any) -> None:
        """From now on, calls go to this instance."""
        self._method.bind(instance)

    async def execute(self, call: IncomingCall) -> Result:
        """Sends the call through the middlewares to the method."""
        if self._kind:
            pieces = self._pieces(_StreamedExchange(call, self._method.route, self._run))
            return StreamResult(pieces, self._kind == "json")
        exchange = _Exchange(call, self._method.route, self._run)
        await self._middlewares.around(exchange)
        return exchange.result()

    def execute_batch(self, calls: Any, tell: Any) -> Any:
        """No batch comes from the node."""
        raise NotImplementedError

    async def _run(self, call: IncomingCall) -> Result:
        if self._batches is not None:
            return await self._batches.result(call)
        return cast("Result", await _executed(self._method, self._method.execute, call))

    async def _pieces(self, exchange: _StreamedExchange) -> AsyncGenerator[str | bytes, None]:
        async def work() -> None:
            try:
                await self._middlewares.around(exchange)
            finally:
                exchange.chunks.put_nowait(_END)

        working = asyncio.ensure_future(work())
        try:
            while (chunk := await exchange.chunks.get()) is not _END:
                yield chunk if self._kind == "bytes" else chunk.decode("utf-8", "replace")
                exchange.taken.release()
            await working
            exchange.check()
        finally:
            working.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await working


class _Exchange:
    """One call as a request and its answer: of the method, and behind the middlewares."""

    def __init__(
        self,
        call: IncomingCall,
        route: str,
        run: Callable[[IncomingCall], Awaitable[Result]],
    ) -> None:
        self._call = call
        self._run = run
        self._asked = False
        self.over = asyncio.Event()
        self._failure: Exception | None = None
        self._result: Result | None = None
        self._inner = _Answer(call)
        """What the method answers."""
        self._outer = _Answer(call)
        """What becomes of it."""
        scope = dict(CallRequest(call, route, None).scope)
        path, own = (f"{each.rstrip('/')}/" for each in (scope["path"], route))
        self._is_plain = path == own or (own != "/" and path.startswith(own))
        """Whether it came by the path of the method, where a status has its place."""
        self._encodings = [field for field in scope["headers"] if field[0] == _ENCODINGS]
        self.scope: dict[str, Any] = {
            **scope,
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            # Whatever the protocol, so that no caller is taken for one of another path.
            "method": "POST",
            "path": route,
            "raw_path": route.encode(),
            "headers": [field for field in scope["headers"] if field[0] != _ENCODINGS],
            "state": {},
            _KEY: self,
        }

    async def receive(self) -> dict[str, Any]:
        """The request, and then its end."""
        if self._asked:
            await self.over.wait()
            return {"type": "http.disconnect"}
        self._asked = True
        body = self._call.arguments.encode()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Mapping[str, Any]) -> None:
        """Takes what comes out of the middlewares."""
        if message["type"] == "http.response.start":
            self._outer.begin(message)
        elif message["type"] == "http.response.body":
            self._outer.add(bytes(message.get("body", b"")))

    async def answer(self, scope: Mapping[str, Any], send: Any) -> None:
        """Runs the method, and sends its answer to the middlewares."""
        self._see(scope)
        try:
            self._result = await self._run(self._call)
            content_type, chunks = _content_of(self._result)
        except Exception as error:  # It passes the middlewares as what callers would see of it.
            await self._refuse(error, send)
            return
        await self._begin(content_type, send)
        async for chunk in chunks:
            await self._pass(chunk, send)
        await send({"type": "http.response.body", "body": b""})

    def result(self) -> Result:
        """What the call answers. Raises what the method has raised, where that passed unchanged."""
        outer = self._outer
        if not outer.has_begun:
            raise outer.refusal()
        is_same = self._inner.has_begun and outer.same_content(self._inner)
        if self._failure is not None and is_same and outer.status == self._inner.status:
            raise self._failure
        if outer.status >= 400 and not self._is_plain and not is_same:
            raise outer.refusal()
        self._tell(is_same)
        return self._result if is_same and self._result is not None else outer.content()

    def _see(self, scope: Mapping[str, Any]) -> None:
        """The method sees the headers and the state that the middlewares leave."""
        passed_state.set(scope.get("state") or {})
        head = self._call.request
        if head is not None:
            fields = [
                (name.decode("latin-1").lower(), value.decode("latin-1"))
                for name, value in [*scope["headers"], *self._encodings]
            ]
            self._call.request = RequestHead(head.method, head.url, fields, head.client)

    async def _begin(self, content_type: str, send: Any) -> None:
        said = self._call.response or ResponseHead()
        names = {name for name, _ in said.headers}
        # What it is, unless the method says another.
        own = [] if "content-type" in names else [("content-type", content_type)]
        message = {
            "type": "http.response.start",
            "status": said.status or 200,
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1", "replace"))
                for name, value in [*said.headers, *own]
            ],
        }
        self._inner.begin(message, own_type=content_type if own else None)
        await send(message)

    async def _pass(self, chunk: bytes, send: Any) -> None:
        self._inner.see(chunk)
        await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _refuse(self, error: Exception, send: Any) -> None:
        self._failure = error
        self._call.response = ResponseHead(_status_of(error))
        await self._begin(_JSON, send)
        said = str(error) if isinstance(error, CallError) else "it failed: its log says why"
        await self._pass(json.dumps({"error": said}).encode(), send)
        await send({"type": "http.response.body", "body": b""})

    def _tell(self, is_same: bool) -> None:
        """Status and headers are those that came out of the middlewares."""
        said, outer, inner = self._call.response, self._outer, self._inner
        status = None if outer.status == 200 else outer.status
        if said is not None and inner.has_begun and outer.status == inner.status:
            status = said.status
        own_type = inner.own_type if is_same else outer.content_type
        headers = [
            (name, value)
            for name, value in outer.headers
            if name != "content-length" and (name != "content-type" or value != own_type)
        ]
        self._call.response = ResponseHead(status, headers)


class _StreamedExchange(_Exchange):
    """The same of a method that yields: its pieces pass as they come."""

    def __init__(
        self, call: IncomingCall, route: str, run: Callable[[IncomingCall], Awaitable[Result]]
    ) -> None:
        super().__init__(call, route, run)
        self.chunks: asyncio.Queue[Any] = asyncio.Queue()
        self.taken = asyncio.Semaphore(0)
        """The next piece is made when somebody has taken the one before."""

    async def send(self, message: Mapping[str, Any]) -> None:
        """Takes what comes out of the middlewares."""
        if message["type"] == "http.response.start" or self._outer.status >= 400:
            await super().send(message)
            self._tell(is_same=self._inner.has_begun)
        elif message.get("body"):
            self.chunks.put_nowait(bytes(message["body"]))
            await self.taken.acquire()

    async def answer(self, scope: Mapping[str, Any], send: Any) -> None:
        """Runs the method, and sends its pieces to the middlewares."""
        self._see(scope)
        pieces: Any = None
        try:
            try:
                made = cast("StreamResult", await self._run(self._call))
                pieces = _each(made.pieces)
                piece = await anext(pieces, _END)
            except Exception as error:  # Nothing of it was sent yet.
                await self._refuse(error, send)
                return
            await self._begin("application/octet-stream", send)
            while piece is not _END:
                chunk = piece.encode() if isinstance(piece, str) else piece
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                piece = await anext(pieces, _END)
            await send({"type": "http.response.body", "body": b""})
        finally:
            if pieces is not None:
                await pieces.aclose()

    def check(self) -> None:
        """Raises for an answer that is none of pieces."""
        outer = self._outer
        if not outer.has_begun or outer.status >= 400:
            if self._failure is not None and outer.same_content(self._inner):
                raise self._failure
            raise outer.refusal()


class _Answer:
    """An answer as it comes: its head, and its content in memory or on disk."""

    def __init__(self, call: IncomingCall) -> None:
        self._call = call
        self._digest = hashlib.sha256()
        self._held = bytearray()
        self._path: Path | None = None
        self.has_begun = False
        self.status = 200
        self.headers: list[tuple[str, str]] = []
        self.own_type: str | None = None
        """The type of the content, where nobody has said another."""

    def begin(self, message: Mapping[str, Any], own_type: str | None = None) -> None:
        """Takes its head."""
        self.has_begun = True
        self.status = int(message["status"])
        self.own_type = own_type
        self.headers = [
            (bytes(name).decode("latin-1").lower(), bytes(value).decode("latin-1"))
            for name, value in message.get("headers", ())
        ]

    def see(self, chunk: bytes) -> None:
        """Knows the next part of its content, and does not keep it."""
        self._digest.update(chunk)

    def add(self, chunk: bytes) -> None:
        """Takes the next part of its content."""
        self.see(chunk)
        self._held += chunk
        if len(self._held) > _MAX_HELD_BYTES:
            if self._path is None:
                self._path = self._call.folder / "behind-middlewares"
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._call.temporary.append(self._path)
            with self._path.open("ab") as opened:
                opened.write(self._held)
            self._held.clear()

    def same_content(self, other: _Answer) -> bool:
        """Whether it contains what the other one does."""
        return self._digest.digest() == other._digest.digest()

    @property
    def content_type(self) -> str:
        said = [value for name, value in self.headers if name == "content-type"]
        return said[-1] if said else "application/octet-stream"

    def refusal(self) -> CallError:
        """What it is as a failure: its content is the message."""
        said = self._held.decode("utf-8", "replace")
        if not self.has_begun:
            return CallError("the middlewares of the service sent no answer")
        return CallError(said, code=code_of_status(self.status), status=self.status)

    def content(self) -> Result:
        """Its content, as a result."""
        if self._path is not None:
            with self._path.open("ab") as opened:
                opened.write(self._held)
            return FileResult(self._path, self.content_type)
        if self.content_type.partition(";")[0].strip() == _JSON:
            with suppress(ValueError):
                text = self._held.decode()
                json.loads(text)
                return JsonResult(text)
        return FileResult(bytes(self._held), self.content_type)


class _Batches:
    """The calls of a batchable method that came through: one batch at a time."""

    def __init__(self, method: BentoEndpoint) -> None:
        self._method = method
        self._most: int = method.manifest["batch"]["maxSize"]
        self._waiting: list[tuple[IncomingCall, Any, asyncio.Future[Result]]] = []
        """Calls, the state that middlewares have left to each, and what waits for its end."""
        self._working: asyncio.Task[None] | None = None

    async def result(self, call: IncomingCall) -> Result:
        """What becomes of a call. What comes while a batch runs is in the next one."""
        end: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._waiting.append((call, passed_state.get(), end))
        if self._working is None:
            self._working = asyncio.ensure_future(self._work())
        return await end

    async def _work(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                calls = [call for call, _, _ in batch]
                # As the request that the method sees, it is that of the first call.
                passed_state.set(batch[0][1])
                try:
                    run = lambda each: self._method.execute_batch(each, _tell_nobody)  # noqa: E731
                    ends = await _executed(self._method, run, calls)
                except Exception as error:
                    ends = [error] * len(batch)
                for (_, _, future), end in zip(batch, ends, strict=True):
                    if future.done():
                        continue
                    if isinstance(end, Exception):
                        future.set_exception(end)
                    else:
                        future.set_result(end)
        finally:
            self._working = None


async def _answered(scope: Mapping[str, Any], _receive: Any, send: Any) -> None:
    """The application behind all middlewares."""
    await scope[_KEY].answer(scope, send)


async def _executed(method: BentoEndpoint, run: Callable[[Any], Any], given: Any) -> Any:
    """What the method makes of it: on the event loop, or in a thread that hears an abort."""
    if method.asynchronous:
        return await run(given)
    return await _in_thread(lambda: run(given), contextvars.copy_context())


async def _in_thread(run: Callable[[], Any], context: contextvars.Context) -> Any:
    threaded = Threaded(run, context)
    try:
        return await asyncio.wrap_future(threaded.end)
    except BaseException:
        threaded.abort()
        raise


async def _each(pieces: Any) -> AsyncGenerator[Any, None]:
    """The pieces of a stream, of which those of a synchronous method are made in threads."""
    if hasattr(pieces, "__anext__"):
        async with aclosing(pieces) as opened:
            async for piece in opened:
                yield piece
        return
    context = contextvars.copy_context()
    step = lambda: next(pieces, _END)  # noqa: E731
    try:
        while (piece := await _in_thread(step, context)) is not _END:
            yield piece
    finally:
        # One that runs still was aborted, and ends itself.
        with suppress(ValueError):
            pieces.close()


def _content_of(result: Result) -> tuple[str, AsyncIterator[bytes]]:
    """The type and the bytes of what a caller gets."""
    if isinstance(result, FileResult):
        return result.content_type, _chunks(result.content)
    assert isinstance(result, JsonResult), "a stream passes by its pieces"
    is_text = result.text is not None
    data = cast("str", result.text if is_text else result.json).encode("utf-8", "replace")
    return (TEXT if is_text else _JSON), _chunks(data)


async def _chunks(content: bytes | Path) -> AsyncGenerator[bytes, None]:
    if isinstance(content, bytes):
        if content:
            yield content
        return
    with content.open("rb") as opened:
        while chunk := await asyncio.to_thread(opened.read, _CHUNK_BYTES):
            yield chunk


def _status_of(error: Exception) -> int:
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return status
    return 400 if getattr(error, "code", None) == "invalid_argument" else 500


def _tell_nobody(_number: int, _end: Any) -> None:
    """For calls whose ends are returned."""
