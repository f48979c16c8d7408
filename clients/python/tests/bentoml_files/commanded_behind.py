"""A command behind a middleware, and behind an application at the root."""

from __future__ import annotations

from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from commanded import Commanded


class Named:
    """Says in a header that it was there, and refuses what asks for it."""

    def __init__(self, app: Any, name: str) -> None:
        self.app = app
        self.name = name.encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers, or leaves that to the next one."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["query_string"] == b"refuse=1":
            await PlainTextResponse("refused", 403)(scope, receive, send)
            return

        async def named(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-named", self.name)]}
            await send(message)

        await self.app(scope, receive, named)


async def own(request: Request) -> PlainTextResponse:
    """A route before those of the command."""
    return PlainTextResponse(f"own {request.url.path}")


Commanded.mount_asgi_app(Starlette(routes=[Route("/own", own)]), path="/")
Commanded.add_asgi_middleware(Named, name="outer")
