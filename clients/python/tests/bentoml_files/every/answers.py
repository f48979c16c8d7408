"""Answers: statuses, headers, cookies, responses, failures, streams, tasks, batches and paths."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from http import HTTPStatus
from typing import Annotated, Any

import bentoml
import numpy as np
from bentoml.validators import ContentType
from pydantic import BaseModel
from starlette.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)


class Token(BaseModel):
    text: str
    number: int = 0


class Answers:
    @bentoml.api
    def status(self, status: int, ctx: bentoml.Context) -> dict[str, int]:
        ctx.response.status_code = status
        return {"status": status}

    @bentoml.api
    def headers(self, headers: dict[str, str], ctx: bentoml.Context) -> str:
        for name, value in headers.items():
            ctx.response.headers[name] = value
        return "with headers"

    @bentoml.api
    def cookies(self, name: str, ctx: bentoml.Context, value: str = "v") -> str:
        ctx.response.set_cookie(name, value)
        ctx.response.set_cookie(
            "second", "2", max_age=60, path="/x", secure=True, httponly=True, samesite="strict"
        )
        return "with cookies"

    @bentoml.api
    def request(self, context: bentoml.Context) -> list[Any]:
        request = context.request
        return [
            request.method,
            request.url.path,
            sorted(request.query_params.items()),
            request.headers.get("x-asked"),
            request.headers.get("user-agent"),
            request.headers.get("accept"),
            request.cookies,
        ]

    @bentoml.api
    def response(self, kind: str, status: int = 200) -> Any:
        if kind == "json":
            return JSONResponse({"ä": [1, 2.0]}, status, headers={"x-kind": "json"})
        if kind == "html":
            return HTMLResponse("<p>ä</p>", status)
        if kind == "text":
            return PlainTextResponse("ä", status)
        if kind == "redirect":
            return RedirectResponse("/elsewhere", status_code=307)
        if kind == "stream":
            return StreamingResponse(iter(["a", "b"]), status, media_type="text/plain")
        if kind == "empty":
            return Response(status_code=204)
        return Response(bytes([0, 255]), status, media_type="application/x-own")

    @bentoml.api
    async def said_and_returned(self, ctx: bentoml.Context) -> Any:
        ctx.response.status_code = 202
        ctx.response.headers["x-said"] = "yes"
        return JSONResponse({"a": 1}, headers={"x-returned": "yes"})

    @bentoml.api
    def html(self) -> Annotated[str, ContentType("text/html")]:
        return "<p>ä</p>"

    @bentoml.api
    def csv(self) -> Annotated[str, ContentType("text/csv")]:
        return "a,b\n"

    @bentoml.api
    def refuse(self, status: int, said: str = "not like this") -> str:
        raise bentoml.exceptions.BentoMLException(said, error_code=HTTPStatus(status))

    @bentoml.task
    def refuse_in_task(self, status: int) -> str:
        raise bentoml.exceptions.BentoMLException("not like this", error_code=HTTPStatus(status))

    @bentoml.api
    def refuse_in_stream(self, status: int) -> Generator[str, None, None]:
        if status:
            raise bentoml.exceptions.BentoMLException("not so", error_code=HTTPStatus(status))
        yield ""

    @bentoml.api(batchable=True, max_batch_size=8)
    async def refuse_in_batch(self, statuses: list[int]) -> list[int]:
        raise bentoml.exceptions.BentoMLException("no", error_code=HTTPStatus(statuses[0]))

    @bentoml.api
    def invalid(self) -> str:
        raise bentoml.exceptions.InvalidArgument("too blue")

    @bentoml.api
    def missing(self) -> str:
        raise bentoml.exceptions.NotFound("no such color")

    @bentoml.api
    async def unavailable(self) -> str:
        raise bentoml.exceptions.ServiceUnavailable("later")

    @bentoml.api
    def broken(self, kind: str = "value") -> str:
        if kind == "key":
            raise KeyError("a secret key")
        raise ValueError("a secret value")

    @bentoml.api
    def wrong_result(self) -> int:
        return "no number"  # type: ignore[return-value]

    @bentoml.api
    def no_result(self) -> None:
        return None

    @bentoml.api
    def without_annotation(self, kind: str):
        return {"text": "ä", "none": None, "list": [1], "bytes": b"a", "object": {"a": 1}}[kind]

    @bentoml.api
    def words(self, text: str) -> Generator[str, None, None]:
        yield from text.split()

    @bentoml.api
    async def words_async(self, text: str) -> AsyncGenerator[str, None]:
        for each in text.split():
            await asyncio.sleep(0)
            yield each

    @bentoml.api
    def events(
        self, count: int
    ) -> Annotated[Generator[str, None, None], ContentType("text/x-own")]:
        for each in range(count):
            yield f"data: {each}\n\n"

    @bentoml.api
    def octet_stream(self, count: int) -> Generator[bytes, None, None]:
        for each in range(count):
            yield bytes([each, 255])

    @bentoml.api
    def one_number(self, value: int) -> Generator[int, None, None]:
        yield value

    @bentoml.api
    async def one_token(self, text: str) -> AsyncGenerator[Token, None]:
        yield Token(text=text)

    @bentoml.api
    def fails_at_once(self, text: str) -> Generator[str, None, None]:
        if text != "fine":
            raise bentoml.exceptions.InvalidArgument("nothing to say")
        yield text

    @bentoml.task
    def add(self, a: int, b: int = 1) -> int:
        return a + b

    @bentoml.task
    async def echo(self, value: dict[str, Any]) -> dict[str, Any]:
        return value

    @bentoml.task
    def failing(self, said: str) -> str:
        raise bentoml.exceptions.InvalidArgument(said)

    @bentoml.task
    def answered(self, ctx: bentoml.Context) -> str:
        ctx.response.status_code = 202
        ctx.response.headers["x-task"] = "yes"
        return "answered"

    @bentoml.api(batchable=True, max_batch_size=8)
    def squares(self, numbers: list[int]) -> list[int]:
        return [each**2 for each in numbers]

    @bentoml.api(batchable=True, max_batch_size=8, batch_dim=0)
    async def sums(self, matrix: np.ndarray) -> np.ndarray:
        return matrix.sum(axis=1)

    @bentoml.api(batchable=True, max_batch_size=8)
    def lengths(self, words: list[str]) -> list[int]:
        if "bad" in words:
            raise ValueError("a bad word")
        return [len(each) for each in words]

    @bentoml.api(route="/v1/routed")
    def routed(self, value: int = 0) -> int:
        return value

    @bentoml.api(route="/deep/er/path.json")
    def deeper(self, value: int = 0) -> int:
        return value
