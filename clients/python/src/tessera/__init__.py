"""Tessera in Python: services that it hosts, and a client of them.

@service
class Summarizer:
    @api
    def summarize(self, text: str) -> str: ...

with SyncHTTPClient("http://localhost:3000") as client:
    client.summarize(text="…")
    client.summarize_batch.submit(texts=["…"]).wait()

Both parts are imported when they are first used: a service needs pydantic only, and the client
needs none of it.
"""

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .async_client import AsyncEndpoint, AsyncHTTPClient, AsyncTask
    from .data import to_numpy, to_pandas
    from .errors import (
        AlreadyFinished,
        AlreadyStarted,
        BadArguments,
        CallFailed,
        Conflict,
        ConnectionBroken,
        DeploymentNotFound,
        EndpointNotFound,
        NotATesseraServer,
        NotFinished,
        NotFound,
        NotReady,
        PermissionDenied,
        QueueFull,
        RequestTooLarge,
        ResultExpired,
        SchemaChanged,
        ServerError,
        ServerNotReached,
        TaskCancelled,
        TaskFailed,
        TaskNotFound,
        TaskRestarted,
        TesseraError,
        TimedOut,
        TooManyRequests,
        Unauthenticated,
        Unavailable,
        Violation,
    )
    from .files import ResultFile, Upload
    from .platform import AsyncPlatformClient, SyncPlatformClient
    from .sdk.batches import Batch, BatchContext
    from .sdk.context import Aborted, Context
    from .sdk.endpoints import api, task
    from .sdk.errors import BadInput, EndpointError, ErrorCode
    from .sdk.files import File, FileType
    from .sdk.metrics import counter, gauge, histogram
    from .sdk.models import model_path
    from .sdk.mounts import mount
    from .sdk.options import Duration
    from .sdk.services import service
    from .sdk.sockets import SocketContext, socket
    from .status import Attempt, Progress, TaskStatus
    from .sync_client import SyncEndpoint, SyncHTTPClient, SyncTask
    from .task_events import LogEvent, ProgressEvent, StateEvent, TaskEvent

# The stubs of gRPC are the package tessera.v1 in a folder of their own; without
# this line Python would look for it in this folder only.
__path__ = extend_path(__path__, __name__)

_MODULES = {
    "async_client": ["AsyncEndpoint", "AsyncHTTPClient", "AsyncTask"],
    "data": ["to_numpy", "to_pandas"],
    "errors": [
        "AlreadyFinished",
        "AlreadyStarted",
        "BadArguments",
        "CallFailed",
        "Conflict",
        "ConnectionBroken",
        "DeploymentNotFound",
        "EndpointNotFound",
        "NotATesseraServer",
        "NotFinished",
        "NotFound",
        "NotReady",
        "PermissionDenied",
        "QueueFull",
        "RequestTooLarge",
        "ResultExpired",
        "SchemaChanged",
        "ServerError",
        "ServerNotReached",
        "TaskCancelled",
        "TaskFailed",
        "TaskNotFound",
        "TaskRestarted",
        "TesseraError",
        "TimedOut",
        "TooManyRequests",
        "Unauthenticated",
        "Unavailable",
        "Violation",
    ],
    "files": ["ResultFile", "Upload"],
    "platform": ["AsyncPlatformClient", "SyncPlatformClient"],
    "sdk.batches": ["Batch", "BatchContext"],
    "sdk.context": ["Aborted", "Context"],
    "sdk.endpoints": ["api", "task"],
    "sdk.errors": ["BadInput", "EndpointError", "ErrorCode"],
    "sdk.files": ["File", "FileType"],
    "sdk.metrics": ["counter", "gauge", "histogram"],
    "sdk.models": ["model_path"],
    "sdk.mounts": ["mount"],
    "sdk.options": ["Duration"],
    "sdk.services": ["service"],
    "sdk.sockets": ["SocketContext", "socket"],
    "status": ["Attempt", "Progress", "TaskStatus"],
    "sync_client": ["SyncEndpoint", "SyncHTTPClient", "SyncTask"],
    "task_events": ["LogEvent", "ProgressEvent", "StateEvent", "TaskEvent"],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:
    # Type checkers would take every name for one that the module has.
    def __getattr__(name: str) -> Any:
        """Imports what is used for the first time."""
        module = _MODULE_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{module}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})


__all__ = [
    "Aborted",
    "AlreadyFinished",
    "AlreadyStarted",
    "AsyncEndpoint",
    "AsyncHTTPClient",
    "AsyncPlatformClient",
    "AsyncTask",
    "Attempt",
    "BadArguments",
    "BadInput",
    "Batch",
    "BatchContext",
    "CallFailed",
    "Conflict",
    "ConnectionBroken",
    "Context",
    "DeploymentNotFound",
    "Duration",
    "EndpointError",
    "EndpointNotFound",
    "ErrorCode",
    "File",
    "FileType",
    "LogEvent",
    "NotATesseraServer",
    "NotFinished",
    "NotFound",
    "NotReady",
    "PermissionDenied",
    "Progress",
    "ProgressEvent",
    "QueueFull",
    "RequestTooLarge",
    "ResultExpired",
    "ResultFile",
    "SchemaChanged",
    "ServerError",
    "ServerNotReached",
    "SocketContext",
    "StateEvent",
    "SyncEndpoint",
    "SyncHTTPClient",
    "SyncPlatformClient",
    "SyncTask",
    "TaskCancelled",
    "TaskEvent",
    "TaskFailed",
    "TaskNotFound",
    "TaskRestarted",
    "TaskStatus",
    "TesseraError",
    "TimedOut",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "Upload",
    "Violation",
    "__version__",
    "api",
    "counter",
    "gauge",
    "histogram",
    "model_path",
    "mount",
    "service",
    "socket",
    "task",
    "to_numpy",
    "to_pandas",
]
