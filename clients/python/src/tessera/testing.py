"""Calls the endpoints of a service in tests, without a server.

```python
assert await call(Reader.detect, text="Guten Tag") == {"language": "de"}
```

Arguments are checked, and results written and read, as a server does it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from pydantic_core import to_json

from .sdk.context import current_call
from .sdk.endpoints import ENDPOINT
from .sdk.executable import (
    FileResult,
    IncomingCall,
    IncomingFile,
    JsonResult,
    Result,
    ServiceError,
    StreamResult,
)
from .sdk.files import File
from .sdk.hosted import HostedClass
from .sdk.services import definition_of, owner_of

__all__ = ["Told", "call", "call_sync"]

_services: WeakKeyDictionary[type, HostedClass] = WeakKeyDictionary()
"""Each class is set up once, as in a worker."""


@dataclass
class Told:
    """What a call told while it ran; give one to ``call`` as ``told=``."""

    progress: list[tuple[float, str]] = field(default_factory=list)
    lines: list[tuple[str, str, Mapping[str, Any] | None]] = field(default_factory=list)
    """Level, message and fields."""
    usage: dict[str, float] = field(default_factory=dict)
    """Amounts by unit."""


async def call(method: Callable[..., Any], /, *, told: Told | None = None, **arguments: Any) -> Any:
    """Calls an endpoint with these arguments, and returns its result.

    A file argument is a ``File``, ``bytes`` or a ``Path``; a result that is a file is a ``File``,
    and a streamed one the list of its pieces. Raises ``CallError`` for wrong arguments and wrong
    results, and what the function raises.
    """
    hosted = await _service_of(method)
    definition = getattr(method, ENDPOINT)
    executable = hosted.endpoints[definition.name]
    with tempfile.TemporaryDirectory(prefix="tessera-") as folder:
        incoming = _incoming(definition.name, arguments, Path(folder), told or Told())
        token = current_call.set(incoming)
        try:
            result: Any = executable.execute(incoming)
            if inspect.isawaitable(result):
                result = await result
            return await _received(result)
        finally:
            current_call.reset(token)


def call_sync(method: Callable[..., Any], /, *, told: Told | None = None, **arguments: Any) -> Any:
    """The same for tests without an event loop."""
    return asyncio.run(call(method, told=told, **arguments))


async def _service_of(method: Callable[..., Any]) -> HostedClass:
    owner = owner_of(method)
    definition = None if owner is None else definition_of(owner)
    if owner is None or definition is None:
        raise ServiceError(f"{method!r} is no endpoint of a class with @service")
    hosted = _services.get(owner)
    if hosted is None:
        hosted = HostedClass(definition)
        await hosted.setup()
        _services[owner] = hosted
    return hosted


class _Outlet:
    def __init__(self, told: Told) -> None:
        self._told = told
        self._lock = threading.Lock()

    def progress(self, fraction: float, message: str) -> None:
        with self._lock:
            self._told.progress.append((fraction, message))

    def usage(self, units: Mapping[str, Any]) -> None:
        with self._lock:
            for name, amount in units.items():
                self._told.usage[name] = self._told.usage.get(name, 0) + amount

    def log(self, level: str, message: str, fields: Mapping[str, Any] | None) -> None:
        with self._lock:
            self._told.lines.append((level, message, fields))

    def close(self) -> None:
        pass


def _incoming(endpoint: str, arguments: dict[str, Any], folder: Path, told: Told) -> IncomingCall:
    files: list[IncomingFile] = []

    def placed(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [placed(each) for each in value]
        if not isinstance(value, (File, bytes, bytearray, Path)):
            return value
        file = value if isinstance(value, File) else _file(value)
        data = file.read()
        files.append(IncomingFile(file.content_type, file.name, len(data), data=data))
        return len(files) - 1

    placed_arguments = {name: placed(value) for name, value in arguments.items()}
    return IncomingCall(
        endpoint=endpoint,
        arguments=to_json(placed_arguments).decode(),
        files=files,
        folder=folder,
        task_id="test",
        attempt=1,
        deadline_seconds=time.time() + 60,
        outlet=_Outlet(told),
    )


def _file(value: bytes | bytearray | Path) -> File:
    return File.from_path(value) if isinstance(value, Path) else File.from_bytes(bytes(value))


async def _received(result: Result) -> Any:
    if isinstance(result, JsonResult):
        return json.loads(result.json)
    if isinstance(result, FileResult):
        content = result.content
        data = content.read_bytes() if isinstance(content, Path) else content
        if result.owned and isinstance(content, Path):
            with suppress(FileNotFoundError):
                content.unlink()
        return File.from_bytes(data, name=result.filename, content_type=result.content_type)
    return await _pieces(result)


async def _pieces(result: StreamResult) -> list[Any]:
    pieces = result.pieces
    made = [each async for each in pieces] if isinstance(pieces, AsyncIterator) else list(pieces)
    return [json.loads(each) for each in made] if result.is_json else made
