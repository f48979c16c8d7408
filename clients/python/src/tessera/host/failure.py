"""The failure of a call, as ``CallFailure`` of the node has it."""

from __future__ import annotations

import asyncio
import errno
import re
import traceback
from pathlib import PurePath
from typing import Any

from ..sdk.context import Aborted
from ..sdk.executable import CallError

MAX_MESSAGE_CHARACTERS = 8192
MAX_STACK_CHARACTERS = 16_384
MAX_VIOLATIONS = 50
MAX_VIOLATION_CHARACTERS = 1024


def failure_of(error: BaseException, aborted: str | None) -> dict[str, Any]:
    """The failure of a call that ended with an exception; ``aborted`` is why it was aborted."""
    if isinstance(error, CallError):
        failure: dict[str, Any] = {
            "code": error.code,
            "reason": error.reason,
            "message": _clip(str(error)),
        }
        if error.status is not None and 400 <= error.status <= 599:
            failure["status"] = error.status
        if error.violations:
            failure["violations"] = [
                {
                    "path": path[:MAX_VIOLATION_CHARACTERS],
                    "message": said[:MAX_VIOLATION_CHARACTERS],
                }
                for path, said in error.violations[:MAX_VIOLATIONS]
            ]
        if error.__cause__ is not None:
            failure["stack"] = _stack_of(error)
        return failure
    code = "internal"
    if aborted is not None and isinstance(error, (Aborted, asyncio.CancelledError)):
        code = "deadline_exceeded" if aborted == "timeout" else "canceled"
    message = _clip(_message_of(error))
    return {"code": code, "reason": "CALL_FAILED", "message": message, "stack": _stack_of(error)}


def has_lost_device(error: BaseException) -> bool:
    """Whether an exception says that the process can use its GPU no more, whoever calls it next.

    These are the errors of CUDA after which every call of a context fails with the same; that its
    memory is full is none of them.
    """
    return _LOST_DEVICE.search(str(error)) is not None


_LOST_DEVICE = re.compile(
    r"CUDA error: (?:device-side assert triggered|an illegal (?:memory access|instruction) was "
    r"encountered|misaligned address|invalid program counter|unspecified launch failure"
    r"|hardware stack error|uncorrectable ECC error encountered"
    r"|the GPU (?:has fallen off the bus|was lost))"
    r"|CUDA_ERROR_(?:ASSERT|ILLEGAL_ADDRESS|ILLEGAL_INSTRUCTION|LAUNCH_FAILED|ECC_UNCORRECTABLE)"
)


def too_large(endpoint: str, max_bytes: int) -> CallError:
    """A result above the limit."""
    return CallError(
        f"the result of {endpoint} is larger than the limit of {max_bytes} bytes: "
        "return less, or a link to it",
        reason="RESULT_TOO_LARGE",
    )


def piece_too_large(endpoint: str, max_bytes: int) -> CallError:
    """A piece of a stream above the limit."""
    return CallError(
        f"a piece of the result of {endpoint} is larger than the limit of {max_bytes} bytes: "
        "yield smaller ones",
        reason="RESULT_TOO_LARGE",
    )


def _message_of(error: BaseException) -> str:
    """The message of an exception, with its type where the message alone says nothing."""
    try:
        text = str(error)
    except Exception:  # An exception of the service whose own text fails.
        text = ""
    name = type(error).__name__
    if isinstance(error, SystemExit):
        return f"the function called sys.exit({text}); raise an error, or return"
    if isinstance(error, Aborted):
        return text or "the call was aborted"
    if _is_refused_process(error):
        return (
            f"{text}: a worker starts processes only if its service asks for some, "
            "@service(processes=8), or its deployment allows them, deployment update --processes 8"
        )
    # The text of a KeyError is the key alone.
    return f"{name}: {text}" if text and isinstance(error, LookupError) else text or name


def _is_refused_process(error: BaseException) -> bool:
    """Whether the sandbox refused a process, or what several share (``multiprocessing``)."""
    if not isinstance(error, OSError) or error.errno not in (errno.EPERM, errno.EROFS):
        return False
    files = {PurePath(frame.filename).name for frame in traceback.extract_tb(error.__traceback__)}
    return not files.isdisjoint(_STARTING_FILES)


_STARTING_FILES = frozenset({"subprocess.py", "popen_fork.py", "synchronize.py", "util.py"})
"""Modules of Python that start processes, and make what they share."""


_folder = ""


def name_files_from(folder: str) -> None:
    """From now on, tracebacks name files by their paths from the folder of the service."""
    global _folder
    _folder = folder.rstrip("/") + "/"


def _stack_of(error: BaseException) -> str:
    try:
        lines = traceback.format_exception(type(error), error, _own_frames(error))
    except Exception as broken:  # A traceback that cannot be formatted must not fail the answer.
        return f"{type(error).__name__}, whose traceback cannot be written: {broken!r}"
    text = "".join(lines)
    if _folder:
        text = text.replace(f'File "{_folder}', 'File "')
    # The innermost frames are at the end.
    return text[-MAX_STACK_CHARACTERS:]


def _own_frames(error: BaseException) -> Any:
    """The traceback without the frames of this program, which say nothing to the author."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_globals.get("__package__") in _OWN_PACKAGES:
        trace = trace.tb_next
    return trace


_OWN_PACKAGES = frozenset({"tessera.host", "tessera.sdk", "tessera.bentoml"})


def _clip(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE_CHARACTERS else text[: MAX_MESSAGE_CHARACTERS - 1] + "…"
