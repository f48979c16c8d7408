"""A service of applications alone, at the root and below, with a middleware around them."""

from __future__ import annotations

from typing import Any

import bentoml
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route


def answering(text: str) -> Any:
    """A route's function."""

    async def answer(_request: Any) -> PlainTextResponse:
        return PlainTextResponse(text)

    return answer


class Stamp:
    """Adds a header to each answer."""

    def __init__(self, app: Any, text: str) -> None:
        self.app = app
        self.text = text

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def stamped(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-stamp", self.text.encode())]
            await send(message)

        await self.app(scope, receive, stamped)


first = Starlette(routes=[Route("/", answering("root")), Route("/both", answering("first"))])
second = Starlette(routes=[Route("/both", answering("second")), Route("/own", answering("own"))])


@bentoml.service
class Rooted:
    """It has no method."""


Rooted.mount_asgi_app(first, path="/")
Rooted.mount_asgi_app(second, path="/")
Rooted.mount_asgi_app(second, path="/below")
Rooted.add_asgi_middleware(Stamp, text="stamped")
