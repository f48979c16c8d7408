"""``print`` and ``logging`` inside of calls, as lines of the log of their call.

Outside of calls they go where they always go, and the node takes them line by line.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, TextIO

from ..sdk.context import current_call

_in_logging: ContextVar[bool] = ContextVar("tessera_in_logging", default=False)
"""A record is being written: it is in the call's log already, and needs no second line there."""

_LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warn"), (logging.INFO, "info"))

MAX_PARTIAL_CHARACTERS = 8192
"""Text without the end of a line that is kept; a longer one becomes a line."""


class CallOutput(io.TextIOBase):
    """Stands in for ``sys.stdout`` or ``sys.stderr``."""

    def __init__(self, stream: TextIO, level: str) -> None:
        self._stream = stream
        self._level = level
        self._partial: dict[int, str] = {}
        self._host = os.getpid()

    def write(self, text: str, /) -> int:
        call = current_call.get()
        if call is None or call.ended or os.getpid() != self._host:
            return self._stream.write(text)
        if _in_logging.get():
            return len(text)
        key = id(call)
        *lines, rest = (self._partial.pop(key, "") + text).split("\n")
        for line in lines:
            call.outlet.log(self._level, line.rsplit("\r", 1)[-1], None)
        if len(rest) > MAX_PARTIAL_CHARACTERS:
            call.outlet.log(self._level, rest, None)
        elif rest:
            self._partial[key] = rest
        return len(text)

    def end_call(self, call: Any) -> None:
        """Logs what the call wrote without the end of a line."""
        rest = self._partial.pop(id(call), "")
        if rest:
            call.outlet.log(self._level, rest.rsplit("\r", 1)[-1], None)

    def flush(self) -> None:
        self._stream.flush()

    def isatty(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._stream.fileno()

    @property
    def buffer(self) -> Any:
        return self._stream.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self._stream.errors


class Outputs:
    """Both streams, and the records of ``logging``."""

    def __init__(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(line_buffering=True, errors="backslashreplace")
        self._out = CallOutput(sys.stdout, "info")
        self._err = CallOutput(sys.stderr, "warn")
        sys.stdout, sys.stderr = self._out, self._err
        logging.root.setLevel(logging.INFO)
        _attribute_records()

    def end_call(self, call: Any) -> None:
        self._out.end_call(call)
        self._err.end_call(call)


def _attribute_records() -> None:
    """Gives each record of a call to its log, whatever handlers the service has."""
    call_handlers = logging.Logger.callHandlers

    def attributed(logger: logging.Logger, record: logging.LogRecord) -> None:
        call = current_call.get()
        if call is None or call.ended:
            call_handlers(logger, record)
            return
        call.outlet.log(_level_of(record.levelno), _message_of(record), _fields_of(record))
        token = _in_logging.set(True)
        try:
            if logger.hasHandlers():
                call_handlers(logger, record)
        finally:
            _in_logging.reset(token)

    logging.Logger.callHandlers = attributed  # type: ignore[method-assign, assignment]


def _level_of(number: int) -> str:
    return next((name for least, name in _LEVELS if number >= least), "debug")


def _message_of(record: logging.LogRecord) -> str:
    try:
        message = record.getMessage()
    except Exception as error:  # What a service formats wrongly must not fail its call.
        message = f"{record.msg} (its arguments do not fit: {error})"
    if record.exc_info:
        message += "\n" + logging.Formatter().formatException(record.exc_info)
    return message


_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _fields_of(record: logging.LogRecord) -> Mapping[str, Any] | None:
    """The logger's name, and what was given as ``extra``."""
    extra = {name: value for name, value in vars(record).items() if name not in _OWN_ATTRIBUTES}
    return {"logger": record.name, **extra} if record.name != "root" else extra or None
