"""The heads of calls and answers, as they cross between the node and its worker."""

from __future__ import annotations

import json
import re
from typing import Any

from ..sdk.errors import code_of_status
from ..sdk.executable import CallError, FileResult, IncomingCall, JsonResult, RequestHead

MAX_HEAD_FIELDS = 100
"""Headers of one head."""
MAX_HEAD_BYTES = 16 * 1024
"""Names and values of the headers of one head."""
MAX_FAILURE_CHARACTERS = 8192

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def read_request(text: str) -> RequestHead:
    """The request that a call came with."""
    sent = json.loads(text)
    headers = [(name, value) for name, value in sent["headers"]]
    return RequestHead(sent["method"], sent["url"], headers, sent["client"] or None)


def head_text(call: IncomingCall) -> str | None:
    """What the function said of its answer, as JSON text; None for nothing.

    Raises ``CallError`` for what HTTP cannot carry, and which the node would take for an attack.
    """
    said = call.response
    if said is None or (said.status is None and not said.headers):
        return None
    fault = _fault(said.status, said.headers)
    if fault is not None:
        message = f"the response of {call.endpoint} cannot be sent: {fault}"
        raise CallError(message, reason="OUTPUT_INVALID")
    head: dict[str, Any] = {"headers": said.headers}
    if said.status is not None:
        head["status"] = said.status
    return json.dumps(head)


def refuse_status(call: IncomingCall, end: JsonResult | FileResult | int) -> None:
    """Raises ``CallError`` for a task whose status says that it failed: no caller waits for it."""
    status = None if call.response is None else call.response.status
    if status is not None and status >= 400:
        said = _said(end)[:MAX_FAILURE_CHARACTERS]
        raise CallError(
            said or f"it answered with {status}", code=code_of_status(status), status=status
        )


def _said(end: JsonResult | FileResult | int) -> str:
    if isinstance(end, JsonResult):
        return "" if end.json == "null" else end.text or end.json
    if isinstance(end, FileResult) and isinstance(end.content, bytes):
        return end.content.decode("utf-8", "replace")
    return ""


def _fault(status: int | None, headers: list[tuple[str, str]]) -> str | None:
    if status is not None and not 200 <= status <= 599:
        return f"the status is {status}, and must be from 200 to 599"
    if len(headers) > MAX_HEAD_FIELDS:
        return f"it has {len(headers)} headers; the limit is {MAX_HEAD_FIELDS}"
    for name, value in headers:
        if not _NAME.fullmatch(name):
            return f"{name[:64]!r} is no name of a header"
        if not _VALUE.fullmatch(value):
            return f"the header {name[:64]} has characters that HTTP cannot carry"
    size = sum(len(name) + len(value) for name, value in headers)
    if size > MAX_HEAD_BYTES:
        return f"its headers have {size} bytes; the limit is {MAX_HEAD_BYTES}"
    return None
