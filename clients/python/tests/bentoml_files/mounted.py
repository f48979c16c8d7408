"""A service with methods, an application of FastAPI, one of WSGI and one of bare ASGI."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import bentoml
from fastapi import FastAPI, HTTPException, Request, WebSocket
from fastapi.responses import JSONResponse, StreamingResponse


@contextlib.asynccontextmanager
async def lifespan(application: FastAPI) -> AsyncIterator[None]:
    application.state.began = True
    yield


app = FastAPI(lifespan=lifespan)


async def bare(scope: Any, receive: Any, send: Any) -> None:
    """Says what it is told of its place."""
    said = f"{scope['method']} {scope.get('root_path')} {scope['path']}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-bare", b"1")]})
    await send({"type": "http.response.body", "body": said})


def old(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """An application of WSGI."""
    start_response("201 Created", [("Content-Type", "text/plain"), ("X-Old", "yes")])
    size = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(size)
    return [environ["REQUEST_METHOD"].encode(), b" ", body]


@bentoml.asgi_app(app, path="/v1")
@bentoml.service
class Mounted:
    """Its methods are at the root, its applications below."""

    def __init__(self) -> None:
        self.name = "the instance"

    @bentoml.api
    def double(self, number: int) -> int:
        """A method beside the applications."""
        return 2 * number

    @app.get("/hello")
    def hello(self, who: str = "nobody") -> dict[str, str]:
        """A route that is a method of the class."""
        return {"from": self.name, "to": who}

    @app.get("/began")
    def began(self, request: Request) -> bool:
        """Whether the lifespan of the application has begun."""
        return bool(request.app.state.began)

    @app.post("/items", status_code=201)
    async def create(self, request: Request) -> JSONResponse:
        """Answers with a status, a header and a cookie."""
        response = JSONResponse({"got": await request.json()}, 201, {"x-own": "1"})
        response.set_cookie("seen", "yes")
        return response

    @app.get("/refuses")
    def refuses(self) -> None:
        """Raises an error of FastAPI."""
        raise HTTPException(409, "as it is")

    @app.get("/stream")
    async def stream(self) -> StreamingResponse:
        """Streams."""

        async def pieces() -> AsyncIterator[str]:
            for number in range(10):
                yield f"{number},"

        return StreamingResponse(pieces(), media_type="text/plain")

    @app.websocket("/socket")
    async def socket(self, socket: WebSocket) -> None:
        """Echoes until it is told to end."""
        await socket.accept()
        async for text in socket.iter_text():
            await socket.send_text(f"{self.name}: {text}")


Mounted.mount_asgi_app(bare, path="/bare")
Mounted.mount_asgi_app(bare, path="/an odd//path 100%")
Mounted.mount_wsgi_app(old, path="/old")
