"""Reads calls as the node sends them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..sdk.executable import IncomingCall, IncomingFile, Outlet, RequestHead
from .frames import Frame
from .heads import read_request


def read_call(sent: dict[str, Any], frame: Frame, outlet: Outlet, scratch: Path) -> IncomingCall:
    """A call with its arguments, which are JSON text alone or with files."""
    folder = scratch / f"call-{sent['id']}"
    payload = sent["arguments"]
    files: list[IncomingFile] = []
    request: RequestHead | None = None
    if isinstance(payload, dict) and "json" in payload:
        files = [
            _read_file(file, frame, folder / f"argument-{index}")
            for index, file in enumerate(payload["files"])
        ]
        if "request" in payload:
            request = read_request(frame.text_of(payload["request"]))
        payload = payload["json"]
    return IncomingCall(
        endpoint=sent["endpoint"],
        arguments=frame.text_of(payload),
        files=files,
        folder=folder,
        task_id=sent["taskId"],
        attempt=sent["attempt"],
        deadline_seconds=sent["deadlineMs"] / 1000,
        outlet=outlet,
        trace=sent.get("trace"),
        request=request,
    )


def _read_file(file: dict[str, Any], frame: Frame, path: Path) -> IncomingFile:
    content_type, filename = file["contentType"], file.get("filename")
    if "data" in file:
        data = frame.bytes_of(file["data"])
        return IncomingFile(content_type, filename, len(data), data=data)
    return IncomingFile(content_type, filename, file["size"], path=path)
