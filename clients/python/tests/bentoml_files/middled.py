"""A service whose methods are behind middlewares, of both kinds that people write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bentoml
from bentoml.exceptions import BentoMLException
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse


class Known(BaseHTTPMiddleware):  # type: ignore[misc]
    """Refuses callers without a name, and leaves the name to the method."""

    async def dispatch(self, request: Request, call_next: Any) -> Any:
        """Answers, or leaves that to the next one."""
        if request.url.path in ("/readyz", "/livez"):
            return await call_next(request)
        if "x-name" not in request.headers:
            return JSONResponse({"who": "are you"}, 401, {"x-refused": "yes"})
        request.state.name = request.headers["x-name"]
        response = await call_next(request)
        response.headers["x-path"] = request.url.path
        return response


class Changed:
    """Of bare ASGI: changes what the methods answer, as callers ask."""

    def __init__(self, app: Any, letter: str) -> None:
        self.app = app
        self.letter = letter.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers through the next one."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = dict(scope["headers"]).get(b"x-change", b"")

        async def changed(message: Any) -> None:
            if message["type"] == "http.response.start":
                status = 202 if asked == b"status" else message["status"]
                # The length is not that of what was changed.
                kept = [field for field in message["headers"] if field[0] != b"content-length"]
                message = {**message, "status": status, "headers": [*kept, (b"x-changed", b"1")]}
            elif asked == b"body":
                message = {**message, "body": message["body"].replace(b"a", self.letter)}
            await send(message)

        if asked == b"raise":
            raise RuntimeError("a middleware is broken")
        await self.app(scope, receive, changed)


@bentoml.service
class Middled:
    """Its methods are behind both."""

    @bentoml.api
    def double(self, number: int) -> int:
        """In a thread."""
        return 2 * number

    @bentoml.api
    async def named(self, ctx: bentoml.Context) -> dict[str, str]:
        """What the middlewares have left."""
        ctx.response.headers["x-own"] = "mine"
        return {"name": ctx.request.state.name, "header": ctx.request.headers["x-name"]}

    @bentoml.api
    def letters(self, text: str) -> str:
        """A text as it is."""
        return text

    @bentoml.api
    def fails(self) -> str:
        """Raises what callers are told."""
        raise BentoMLException("not now", error_code=409)

    @bentoml.api
    def file(self, ctx: bentoml.Context) -> Path:
        """A file that is larger than what is kept in memory."""
        path = Path(ctx.temp_dir) / "banana.txt"
        path.write_bytes(b"banana " * 300_000)
        return path

    @bentoml.api
    def tokens(self, count: int) -> Iterator[str]:
        """A stream."""
        for number in range(count):
            yield f"a{number} "

    @bentoml.api(batchable=True)
    def lengths(self, texts: list[str]) -> list[int]:
        """A batch."""
        return [len(text) for text in texts]

    @bentoml.task
    def later(self, text: str) -> str:
        """A task."""
        return text


Middled.add_asgi_middleware(Known)
Middled.add_asgi_middleware(Changed, letter="o")
