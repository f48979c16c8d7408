"""Calls of an adapted service, as the host makes them."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cases import Case
from tessera.sdk.executable import FileResult, HostedService, IncomingCall, IncomingFile, JsonResult

_numbers = itertools.count()


class NoOutlet:
    """Nothing listens."""

    def progress(self, fraction: float, message: str) -> None:
        """Drops it."""

    def usage(self, units: Mapping[str, Any]) -> None:
        """Drops it."""

    def log(self, level: str, message: str, fields: Mapping[str, Any] | None) -> None:
        """Drops it."""


def incoming(
    service: HostedService, case: Case, folder: Path, *, on_disk: bool = False
) -> IncomingCall:
    """The call as the node sends it, once it has read the request."""
    manifest = service.endpoints[case.endpoint].manifest
    arguments = dict(case.json or {})
    uploads = list(case.files)
    if "rootArgument" in manifest:
        name = manifest["rootArgument"]
        if name in manifest["files"]:
            uploads = [(name, case.value)]
        else:
            arguments = {name: case.value}
    own = folder / f"call-{next(_numbers)}"
    files: list[IncomingFile] = []
    for name, (filename, data, content_type) in uploads:
        if manifest["files"][name]["array"]:
            arguments.setdefault(name, []).append(len(files))
        else:
            arguments[name] = len(files)
        path = own / f"argument-{len(files)}"
        if on_disk:
            own.mkdir(exist_ok=True)
            path.write_bytes(data)
        files.append(
            IncomingFile(
                content_type,
                filename or None,
                len(data),
                data=None if on_disk else data,
                path=path if on_disk else None,
            )
        )
    return IncomingCall(
        endpoint=case.endpoint,
        arguments=json.dumps(arguments),
        files=files,
        folder=own,
        task_id="0199-task",
        attempt=1,
        deadline_seconds=time.time() + 60,
        outlet=NoOutlet(),
    )


async def execute(service: HostedService, call: IncomingCall) -> bytes:
    """The body that the caller gets: sync methods run in a thread, as in the host."""
    endpoint = service.endpoints[call.endpoint]
    if endpoint.asynchronous:
        result = endpoint.execute(call)
        result = await result if inspect.isawaitable(result) else result
        if hasattr(result, "pieces"):
            return b"".join([_bytes(each) async for each in result.pieces])
    else:
        result = await asyncio.to_thread(endpoint.execute, call)
        if hasattr(result, "pieces"):
            return b"".join(_bytes(each) for each in await asyncio.to_thread(list, result.pieces))
    return body(result)


def body(result: Any) -> bytes:
    """The bytes of a result."""
    if isinstance(result, FileResult):
        content = result.content
        return content.read_bytes() if isinstance(content, Path) else content
    assert isinstance(result, JsonResult)
    return (result.json if result.text is None else result.text).encode()


def _bytes(piece: str | bytes) -> bytes:
    return piece.encode() if isinstance(piece, str) else piece
