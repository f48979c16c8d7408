"""The request that ``bentoml.Context`` shows of a call, and its temporary folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.datastructures import State
from starlette.requests import Request

from ..sdk.executable import IncomingCall, RequestHead
from . import internals

FOLDER_NAME = "files"
"""Within the folder of a call, beside what the host keeps there."""


passed_state: ContextVar[dict[str, Any] | None] = ContextVar("passed_state", default=None)
"""What middlewares have left in the state of the request."""

_HEADERS = [("content-type", "application/json")]
_PORTS = {"http": 80, "https": 443}


class CallRequest(Request):  # type: ignore[misc]
    """A request without a connection: the caller's own one ended at the node."""

    def __init__(self, call: IncomingCall, route: str, task_id: str | None) -> None:
        head = call.request or RequestHead("POST", f"http://localhost{route}", _HEADERS, None)
        url = urlsplit(head.url)
        fields = [field for field in head.headers if field[0] != "traceparent"]
        if call.trace is not None:
            fields.append(("traceparent", call.trace.partition(" ")[0]))
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": head.method,
            "scheme": url.scheme,
            "path": unquote(url.path),
            "raw_path": url.path.encode(),
            "root_path": "",
            "query_string": url.query.encode(),
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1", "replace"))
                for name, value in fields
            ],
            "server": (url.hostname or "localhost", url.port or _PORTS[url.scheme]),
            "client": None if head.client is None else (head.client, 0),
        }
        super().__init__(scope, self._receive_body)
        self._call = call
        self._state = _CallState(call)
        if task_id is not None:
            self._state.task_id = task_id

    @property
    def state(self) -> Any:
        return self._state

    async def _receive_body(self) -> dict[str, Any]:
        return {"type": "http.request", "body": self._call.arguments.encode(), "more_body": False}


class _CallState(State):  # type: ignore[misc]
    """Makes the temporary folder when somebody asks for it: most calls need none."""

    def __init__(self, call: IncomingCall) -> None:
        super().__init__({**(passed_state.get() or {}), "call": call, "open": True})

    def __getattr__(self, key: Any) -> Any:
        if key == "temp_dir" and self._state["open"]:
            return files_folder(self._state["call"])
        return super().__getattr__(key)

    def close(self) -> None:
        """From now on there is no temporary folder, which BentoML would empty and use again."""
        self._state["open"] = False


def files_folder(call: IncomingCall) -> str:
    """The folder for files of a call. It goes with the call."""
    folder = os.path.join(call.folder, FOLDER_NAME)
    os.makedirs(folder, mode=0o700, exist_ok=True)
    return folder


@contextmanager
def call_scope(service: Any, request: CallRequest) -> Iterator[Any]:
    """Within it, ``bentoml.Context`` is of this call. It may be entered again."""
    request.state._state["open"] = True
    with internals.request_scope(service, request) as context:
        try:
            yield context
        finally:
            request.state.close()
