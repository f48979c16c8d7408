"""Executes calls: each sync function in a thread of its own, each async one on the event loop.

Any exception becomes the failure of that one call.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import shutil
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, cast

from ..sdk.context import current_call
from ..sdk.executable import (
    CallError,
    Executable,
    FileResult,
    HostedService,
    IncomingCall,
    JsonResult,
    StreamResult,
    Tell,
)
from .call_log import LogBudget
from .calls import read_call
from .failure import failure_of, has_lost_device
from .frames import Attachments, Frame
from .heads import refuse_status
from .outbox import Entry, Outbox
from .output import Outputs
from .results import (
    MAX_INLINE_FILE_BYTES,
    MAX_INLINE_RESULT_CHARACTERS,
    ResultLimits,
    write_count,
    write_result,
)
from .run import CallOutlet, Run
from .streams import Stream
from .threads import Threads
from .traces import enter_trace

End = Any
"""How a call ended: a result, the number of its pieces, or an exception."""


LOST_DEVICE_EXIT_CODE = 71
"""That of an operating system that fails (`sysexits.h`, `EX_OSERR`)."""


class Executor:
    """Runs the calls of one service."""

    def __init__(
        self,
        service: HostedService,
        outbox: Outbox,
        *,
        outputs: Outputs,
        scratch: Path,
        limits: ResultLimits,
    ) -> None:
        self._service = service
        self._outbox = outbox
        self._outputs = outputs
        self._scratch = scratch
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._threads = Threads()
        self._pid = os.getpid()
        self._budget = LogBudget()
        self._running: dict[int, Run] = {}
        self._streams: dict[int, Stream] = {}
        self._text_endpoints: frozenset[str] = frozenset()
        self._idle: Callable[[], None] | None = None

    def start(self, sent: Sequence[dict[str, Any]], frame: Frame) -> None:
        """Begins calls that came together, each by itself."""
        for one in sent:
            executable = self._executable(one)
            if executable is not None:
                self._begin(Run(executable, {one["id"]: self._read(one, executable, frame)}))

    def start_batch(self, sent: Sequence[dict[str, Any]], frame: Frame) -> None:
        """Begins calls of one endpoint that its function takes together."""
        # Each call of an endpoint that is not there gets its end.
        executables = [self._executable(one) for one in sent]
        executable = executables[0]
        if executable is not None:
            calls = {one["id"]: self._read(one, executable, frame) for one in sent}
            self._begin(Run(executable, calls, is_batch=True))

    def abort(self, call_id: int, reason: str) -> None:
        """Ends a call. A batch goes on until all of its calls are aborted or have ended."""
        run = self._running.get(call_id)
        if run is None:
            return
        run.calls[call_id].aborted = reason
        stream = self._streams.get(call_id)
        if stream is not None:
            stream.close()
        if all(call.aborted or call.ended for call in run.calls.values()):
            run.abort(reason)
        else:
            self._end(run, call_id, asyncio.CancelledError("the call was aborted"))

    def more(self, call_id: int, count: int) -> None:
        """The node takes so many more pieces of a call."""
        stream = self._streams.get(call_id)
        if stream is not None:
            stream.more(count)

    def set_text_endpoints(self, names: Sequence[str]) -> None:
        """The endpoints whose string results are sent to callers as text."""
        self._text_endpoints = frozenset(names)

    def when_idle(self, idle: Callable[[], None]) -> None:
        """Calls ``idle`` on the event loop once no call is under way."""
        self._idle = idle
        if not self._running:
            self._loop.call_soon(idle)

    def _executable(self, sent: dict[str, Any]) -> Executable | None:
        name = sent["endpoint"]
        executable = self._service.endpoints.get(name)
        if executable is None:
            message = f"service {self._service.manifest['name']} has no endpoint {name}"
            failure = {"code": "not_found", "reason": "ENDPOINT_NOT_FOUND", "message": message}
            self._outbox.add("results", _failed(sent["id"], failure))
        return executable

    def _read(self, sent: dict[str, Any], executable: Executable, frame: Frame) -> IncomingCall:
        has_progress = executable.manifest["kind"] == "task"
        outlet = CallOutlet(sent["id"], has_progress, self._outbox, self._budget)
        return read_call(sent, frame, outlet, self._scratch)

    def _begin(self, run: Run) -> None:
        for call_id in run.calls:
            self._running[call_id] = run
        first = next(iter(run.calls.values()))
        context = contextvars.copy_context()
        context.run(current_call.set, first)
        if first.trace is not None:
            context.run(enter_trace, first.trace)
        if run.executable.asynchronous:
            run.task = context.run(self._loop.create_task, self._run_on_loop(run))
        else:
            self._threads.run(lambda: context.run(self._run_in_thread, run), first.endpoint)

    async def _run_on_loop(self, run: Run) -> None:
        ends: Sequence[End]
        executable = run.executable
        try:
            if run.is_batch:
                calls = list(run.calls.values())
                ends = await _awaited(executable.execute_batch(calls, self._teller(run)))
            else:
                result = await _awaited(executable.execute(run.only))
                if isinstance(result, StreamResult):
                    pieces = cast("AsyncIterator[str | bytes]", result.pieces)
                    result = await self._open_stream(run).send_all(pieces)
                ends = [result]
        except BaseException as error:  # Whatever the function raised ends its calls.
            ends = [error] * len(run.calls)
        self._leave_if_forked()
        for call_id, end in zip(list(run.calls), ends, strict=True):
            if _is_large(end):
                await asyncio.to_thread(self._end, run, call_id, end)
            else:
                self._end(run, call_id, end)

    def _run_in_thread(self, run: Run) -> bool:
        ends: Sequence[End]
        try:
            try:
                run.enter_thread()
                ends = self._execute(run)
            except BaseException as error:
                ends = [error] * len(run.calls)
            run.leave_thread()
        except BaseException as error:  # An abort that came when the function had ended.
            run.leave_thread()
            ends = [error] * len(run.calls)
        self._leave_if_forked()
        for call_id, end in zip(list(run.calls), ends, strict=True):
            self._end(run, call_id, end)
        return not run.aborts

    def _execute(self, run: Run) -> Sequence[End]:
        executable = run.executable
        if run.is_batch:
            calls = list(run.calls.values())
            return cast("Sequence[End]", executable.execute_batch(calls, self._teller(run)))
        result = executable.execute(run.only)
        if isinstance(result, StreamResult):
            pieces = cast("Iterator[str | bytes]", result.pieces)
            return [self._open_stream(run).send_all_in_thread(pieces)]
        return [result]

    def _teller(self, run: Run) -> Tell:
        """Ends calls of a batch that goes on for others."""
        ids = list(run.calls)

        def tell(index: int, end: End) -> None:
            # What goes to disk waits for the end of all, as it may hold up the event loop.
            if os.getpid() == self._pid and not _is_large(end):
                with run.undisturbed():
                    self._end(run, ids[index], end)

        return tell

    def _leave_if_forked(self) -> None:
        """Ends a process that a function forked, and that returned from it as the worker does."""
        if os.getpid() != self._pid:
            os._exit(0)

    def _open_stream(self, run: Run) -> Stream:
        (call_id,) = run.calls
        stream = Stream(call_id, run.only, self._outbox)
        self._streams[call_id] = stream
        return stream

    def _end(self, run: Run, call_id: int, end: End) -> None:
        """Sends the end of a call, from any thread; only the first one counts."""
        if self._running.pop(call_id, None) is None:
            return
        self._streams.pop(call_id, None)
        call = run.calls[call_id]
        self._outputs.end_call(call)
        call.ended = True
        call.outlet.close()
        entry = self._entry(call_id, run, end)
        _clear(call)
        self._outbox.add("results", entry)
        if not self._running and self._idle is not None:
            self._loop.call_soon_threadsafe(self._idle)

    def _entry(self, call_id: int, run: Run, end: End) -> Entry:
        call = run.calls[call_id]
        error = end
        try:
            if isinstance(end, (int, JsonResult, FileResult)) and run.is_task:
                refuse_status(call, end)
            if isinstance(end, int):
                return write_count(call_id, call, end)
            if isinstance(end, (JsonResult, FileResult)):
                as_text = call.endpoint in self._text_endpoints
                return write_result(call_id, call, end, self._limits, as_text=as_text)
        except OSError as failed:
            error = CallError(f"the result could not be written: {failed.strerror}")
        except CallError as refused:
            error = refused
        if has_lost_device(error):
            _lose_device(error)
        return _failed(call_id, failure_of(error, call.aborted))


def _lose_device(error: BaseException) -> NoReturn:
    """Ends the process, in which no call that needs the GPU can succeed any more.

    The call is not answered: the node knows what becomes of one whose worker has ended, and the
    other calls of this process fare the same.
    """
    traceback.print_exception(error)
    print("this process cannot use its GPU any more, and ends", file=sys.stderr, flush=True)
    os._exit(LOST_DEVICE_EXIT_CODE)


def _awaited(given: Any) -> Awaitable[Any]:
    """What an executable of the event loop returns."""
    return cast("Awaitable[Any]", given)


def _failed(call_id: int, failure: dict[str, Any]) -> Entry:
    """A failure stands in an attachment, because it may be long."""

    def entry(attachments: Attachments) -> dict[str, Any]:
        return {"id": call_id, "failure": attachments.add(json.dumps(failure))}

    return entry


def _clear(call: IncomingCall) -> None:
    """Removes what was written for the call; its folder stays for a result on disk."""
    for path in call.temporary:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    if call.temporary:
        with suppress(OSError):
            call.folder.rmdir()


def _is_large(end: End) -> bool:
    """True for a result that goes to disk."""
    if isinstance(end, FileResult):
        return not isinstance(end.content, bytes) or len(end.content) > MAX_INLINE_FILE_BYTES
    return isinstance(end, JsonResult) and len(end.json) > MAX_INLINE_RESULT_CHARACTERS
