"""What the libraries in this process count with prometheus_client, for the node.

Once it has been imported, whoever did, its registry is written as its own ``/metrics`` page would
be, and sent when it has changed. Where nobody imports it, nothing is looked at.

Several processes of one worker are counted together in its multiprocess mode: each writes its
numbers to the folder ``PROMETHEUS_MULTIPROC_DIR``.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from .frames import Attachments
from .outbox import Outbox

MAX_BYTES = 1024 * 1024
"""What the node reads at most."""
INTERVAL_SECONDS = 1.0
"""How often it is looked at most."""
SHARE_OF_TIME = 0.02
"""How much of its time a worker spends on this at most."""
LAST_LOOK_SECONDS = 1.0
"""How long a worker that stops waits for the last numbers."""
FOLDER = "PROMETHEUS_MULTIPROC_DIR"

_OF_PROCESS = ("process_", "python_gc_", "python_info")
"""What the library counts of the process by itself. The platform measures it from outside."""
_AGGREGATORS = {"min", "max", "sum"}


def own_folder() -> None:
    """Gives this worker a folder of its own within that of the environment, if it names one.

    Those of other workers, and of those before them, are in the one that it names.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    # Where it cannot be made, prometheus_client says so itself.
    with contextlib.suppress(OSError):
        os.makedirs(folder, exist_ok=True)
        own = tempfile.mkdtemp(prefix="worker-", dir=folder)
        os.environ[FOLDER] = own
        atexit.register(_remove, own, os.getpid())


def _remove(folder: str, made_by: int) -> None:
    # What the service forks may end by itself, and runs this then.
    if os.getpid() == made_by:
        shutil.rmtree(folder, ignore_errors=True)


class Exposition:
    """Sends the registry when it has changed, until it is stopped."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._thread: ThreadPoolExecutor | None = None
        self._next_look = 0.0
        self._sent = ""
        self._complained = False
        self._following = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Sends what has changed since the last time, and nothing afterwards."""
        self._following.cancel()
        await asyncio.wait([self._following])
        self._next_look = 0.0
        try:
            await asyncio.wait_for(self._send(), LAST_LOOK_SECONDS)
        except asyncio.TimeoutError:
            print("the last metrics of prometheus_client were not there in time", file=sys.stderr)

    async def _follow(self) -> None:
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            await self._send()

    async def _send(self) -> None:
        begun = time.monotonic()
        if "prometheus_client" not in sys.modules or begun < self._next_look:
            return
        if self._thread is None:
            # In a thread of its own: collectors may be slow, and the registry may be large.
            self._thread = ThreadPoolExecutor(1, "exposition")
        text = await asyncio.get_running_loop().run_in_executor(self._thread, self._read)
        self._next_look = begun + (time.monotonic() - begun) / SHARE_OF_TIME
        if text is not None and text != self._sent:
            self._sent = text
            attachments = Attachments()
            header = {"type": "exposition", "text": attachments.add(text)}
            self._outbox.post(header, attachments)

    def _read(self) -> str | None:
        """The text; None where there is none, which is said once."""
        try:
            import prometheus_client

            registry = prometheus_client.REGISTRY
            lines = "".join(_aggregators(registry, prometheus_client.Gauge))
            folder = os.environ.get(FOLDER)
            collected: Any = registry
            if folder and os.path.isdir(folder):
                from prometheus_client.multiprocess import MultiProcessCollector

                collected = prometheus_client.CollectorRegistry()
                MultiProcessCollector(collected, folder)
            text: str = lines + prometheus_client.generate_latest(_Own(collected)).decode()
            if len(text.encode()) > MAX_BYTES:
                raise ValueError(f"they have more than {MAX_BYTES} bytes: use fewer labels")
            return text
        except Exception as error:
            if not self._complained:
                self._complained = True
                traceback.print_exception(error)
                print("the metrics of prometheus_client cannot be read", file=sys.stderr)
            return None


class _Own:
    """A registry without what the library counts of the process by itself."""

    def __init__(self, registry: Any) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Any]:
        for metric in self._registry.collect():
            if not metric.name.startswith(_OF_PROCESS):
                yield metric


def _aggregators(registry: Any, gauge: Any) -> Iterator[str]:
    """How gauges say that processes are combined, which is right for workers, too."""
    for collector in list(getattr(registry, "_collector_to_names", ())):
        mode = str(getattr(collector, "_multiprocess_mode", "")).removeprefix("live")
        if isinstance(collector, gauge) and mode in _AGGREGATORS:
            yield f"# AGGREGATOR {collector._name} {mode}\n"
