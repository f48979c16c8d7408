"""The program: loads one service, executes the calls that the node sends, returns their results.

States: waiting for ``load``; loading, until the service says that it is ready; ready; stopping
(after ``stop``, until the last call has ended). It holds no durable state: if it dies, the node
knows which calls were under way.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import ctypes
import json
import os
import platform
import signal
import sys
import traceback
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NoReturn, cast

from ..version import __version__
from .channel import Channel
from .exposition import Exposition, own_folder
from .failure import name_files_from
from .frames import Attachments, Frame
from .mounts import Mounts
from .outbox import Changes, Outbox
from .output import Outputs
from .results import ResultLimits

PROTOCOL_VERSION = 2
MAX_REFUSAL_CHARACTERS = 16_384
CHANGES_INTERVAL_SECONDS = 1.0
"""Interval at which a worker sends what its service has counted."""
PR_SET_PDEATHSIG = 1


def main() -> NoReturn:
    """Runs the worker until the node ends it."""
    _die_with_node()
    _leave_ends_to_node()
    outputs = Outputs()
    channel = Channel(on_lost=lambda: os._exit(1))
    channel.send(
        {
            "type": "hello",
            "protocols": [PROTOCOL_VERSION],
            "language": "python",
            "version": platform.python_version(),
            "sdk": __version__,
        }
    )
    load = channel.receive_first().header
    relay = os.environ.pop("TESSERA_EGRESS_SOCKET", None)
    if relay is not None:
        from .egress_relay import start_egress_relay

        start_egress_relay(relay)
    own_folder()
    service = _load(channel, load)
    try:
        _runner(service)(_serve(channel, outputs, load, service))
    except BaseException as error:  # Nothing else can tell the node why.
        traceback.print_exception(error)
        _exit(1)
    _exit(0)


def _runner(service: Any) -> Callable[[Coroutine[Any, Any, None]], None]:
    """What runs the event loop: uvloop, where the service mounts an application and has it.

    So does uvicorn by itself, whose default installation brings it. Functions alone keep asyncio's.
    """
    if not all(each.is_program for each in service.mounts):
        with contextlib.suppress(ImportError):
            import uvloop

            return cast("Callable[[Coroutine[Any, Any, None]], None]", uvloop.run)
    return asyncio.run


def _leave_ends_to_node() -> None:
    """Lets signals pass that ask a process to end, in this process alone.

    Ctrl-C and service managers signal all processes of a group, but the node decides. What the
    service forks ends by them, as multiprocessing's pools end their workers; a signal that comes
    while it is forked waits for that.
    """
    ends = (signal.SIGINT, signal.SIGTERM)
    for number in ends:
        signal.signal(number, lambda *_: None)

    def end_child() -> None:
        for number in ends:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)

    os.register_at_fork(
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ends),
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, ends),
        after_in_child=end_child,
    )


def _die_with_node() -> None:
    """Asks the kernel to end this process when its node ends, also while it holds the GIL."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _load(channel: Channel, load: dict[str, Any]) -> Any:
    """Imports the service, before there is an event loop: what it runs at import may need one."""
    source = load["code"]
    if load.get("isolated"):
        name_files_from(source.get("folder") or os.path.dirname(source["module"]))
    try:
        from ..sdk.loading import Installation, load_service

        return load_service(
            source["module"],
            source.get("name"),
            folder=source.get("folder"),
            installation=Installation.LOCKED if load.get("isolated") else Installation.OWN,
        )
    except SystemExit as error:
        _refuse(
            channel, f"{source['module']}: the process exited with code {error.code} while loading"
        )
    except BaseException as error:  # Whatever the service raises, its author is told.
        _refuse(channel, str(error) or type(error).__name__)


def _refuse(channel: Channel, reason: str) -> NoReturn:
    """Ends the worker, and says why: the service cannot be loaded, or a program of it has ended."""
    attachments = Attachments()
    message = attachments.text(reason[:MAX_REFUSAL_CHARACTERS])
    channel.send({"type": "refused", "message": message}, attachments)
    _exit(1)


async def _serve(channel: Channel, outputs: Outputs, load: dict[str, Any], service: Any) -> None:
    from .executor import Executor
    from .readiness import MAX_NOT_READY_CHARACTERS, NotReady, Readiness

    outbox = Outbox(channel, _take_changes)
    executor = Executor(
        service,
        outbox,
        outputs=outputs,
        scratch=Path(load["scratchFolder"]),
        limits=ResultLimits(load["maxFileBytes"], load["maxResultBytes"]),
    )
    stopped = asyncio.Event()
    readiness: Readiness | None = None
    # A build asks for the manifest, which the import has told.
    is_set_up = load.get("probe") != "import"
    mounts: Mounts | None = None
    try:
        if is_set_up:
            await service.setup()
            mounts = Mounts(
                service.mounts,
                Path(load["scratchFolder"]),
                folder=Path(load["servicePath"]).parent,
                on_ended=lambda reason: _refuse(channel, reason),
                programs=service.programs,
            )

            def say(said: str) -> None:
                channel.send({"type": "readiness", "said": said[:MAX_NOT_READY_CHARACTERS]})

            await mounts.start(say)
            # A build asks for the manifest; what the service is ready for is not there.
            if load.get("probe") is None and (service.ready or mounts.health) is not None:
                readiness = Readiness(service.ready, say, health=mounts.health)
                await readiness.reached()
    except NotReady as error:
        if error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        _refuse(channel, str(error))
    except Exception as error:
        traceback.print_exception(error)
        _refuse(channel, f"setup of the service failed: {type(error).__name__}: {error}")

    def receive(frame: Frame) -> None:
        message = frame.header
        kind = message["type"]
        if kind == "calls":
            executor.start(message["calls"], frame)
        elif kind == "batch":
            executor.start_batch(message["calls"], frame)
        elif kind == "text_results":
            executor.set_text_endpoints(message["endpoints"])
        elif kind == "abort":
            executor.abort(message["id"], message["reason"])
        elif kind == "more":
            executor.more(message["id"], message["count"])
        elif kind == "connect" and mounts is not None:
            mounts.connect(message["mount"])
        elif kind == "retire" and mounts is not None:
            mounts.retire()
        elif kind == "ping":
            outbox.post({"type": "pong", "sequence": message["sequence"]})
        elif kind == "stop":
            executor.when_idle(stopped.set)

    attachments = Attachments()
    manifest = attachments.add(json.dumps(service.manifest))
    channel.send({"type": "ready", "manifest": manifest}, attachments)
    await channel.start(receive)
    counting = asyncio.create_task(_send_changes(outbox))
    exposition = Exposition(outbox)
    following = None if readiness is None else asyncio.create_task(readiness.follow())
    await stopped.wait()
    counting.cancel()
    if following is not None:
        following.cancel()
    if mounts is not None:
        await mounts.stop()
        await service.teardown()
    await exposition.stop()
    outbox.flush()
    await channel.flush()


async def _send_changes(outbox: Outbox) -> None:
    while True:
        await asyncio.sleep(CHANGES_INTERVAL_SECONDS)
        outbox.send_changes()


def _take_changes() -> Changes:
    # Loaded by services that count, and by no other.
    metrics = sys.modules.get("tessera.sdk.metrics")
    return metrics.take_changes() if metrics is not None else ([], [])


def _exit(code: int) -> NoReturn:
    """Ends the process, whatever threads of the service go on."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)
