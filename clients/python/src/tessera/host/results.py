"""Writes results as the node reads them: in the message, or on disk where they are large."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..sdk.executable import FileResult, IncomingCall, JsonResult
from .failure import too_large
from .frames import Attachments
from .heads import head_text
from .outbox import Entry

MAX_INLINE_FILE_BYTES = 256 * 1024
"""File that crosses in a message; a larger one crosses on disk."""
MAX_INLINE_RESULT_CHARACTERS = 256 * 1024
RESULT_NAME = "result"


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """What the node takes, in bytes."""

    file_bytes: int
    result_bytes: int


def write_result(
    call_id: int,
    call: IncomingCall,
    result: JsonResult | FileResult,
    limits: ResultLimits,
    *,
    as_text: bool,
) -> Entry:
    """The entry of a result. Raises ``CallError`` for one that is too large."""
    if isinstance(result, FileResult):
        return _entry(call_id, call, _write_file(call, result, limits.file_bytes))
    if len(result.json) > limits.result_bytes:
        raise too_large(call.endpoint, limits.result_bytes)
    if len(result.json) <= MAX_INLINE_RESULT_CHARACTERS:
        return _entry(call_id, call, _inline(result.json))
    text, content_type = (
        (result.json, "application/json")
        if result.text is None or not as_text
        else (result.text, "text/plain; charset=utf-8")
    )
    data = text.encode("utf-8", "replace")
    _result_path(call).write_bytes(data)
    on_disk = {"contentType": content_type, "size": len(data)}
    return _entry(call_id, call, lambda _: {"json": "", "files": [], "text": on_disk})


def write_count(call_id: int, call: IncomingCall, pieces: int) -> Entry:
    """The entry of a streamed result: the number of its pieces, of which the first has the head."""
    if pieces > 0:
        return lambda _: {"id": call_id, "result": str(pieces)}
    return _entry(call_id, call, _inline("0"))


Payload = Callable[[Attachments], "dict[str, Any] | str | dict[str, list[int]]"]
"""Writes a result: JSON text, or that with files."""


def _inline(json: str) -> Payload:
    return lambda attachments: attachments.text(json)


def _write_file(call: IncomingCall, result: FileResult, max_bytes: int) -> Payload:
    content = result.content
    size = content.stat().st_size if isinstance(content, Path) else len(content)
    if size > max_bytes:
        raise too_large(call.endpoint, max_bytes)
    facts: dict[str, Any] = {"contentType": result.content_type}
    if result.filename:
        facts["filename"] = result.filename
    if size <= MAX_INLINE_FILE_BYTES:
        data = content.read_bytes() if isinstance(content, Path) else content
        if result.owned and isinstance(content, Path):
            content.unlink(missing_ok=True)
        return lambda attachments: {
            "json": "0",
            "files": [{**facts, "data": attachments.add(data)}],
        }
    path = _result_path(call)
    if not isinstance(content, Path):
        path.write_bytes(content)
    elif result.owned:
        os.replace(content, path)
    else:
        shutil.copyfile(content, path)
    facts["size"] = size
    return lambda _: {"json": "0", "files": [facts]}


def _entry(call_id: int, call: IncomingCall, payload: Payload) -> Entry:
    head = head_text(call)
    if head is None:
        return lambda attachments: {"id": call_id, "result": payload(attachments)}

    def entry(attachments: Attachments) -> dict[str, Any]:
        written = payload(attachments)
        is_whole = isinstance(written, dict) and "json" in written
        result: Any = written if is_whole else {"json": written, "files": []}
        return {"id": call_id, "result": {**result, "response": attachments.add(head)}}

    return entry


def _result_path(call: IncomingCall) -> Path:
    call.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return call.folder / RESULT_NAME
