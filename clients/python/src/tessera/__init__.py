"""A client of services that Tessera hosts.

with SyncHTTPClient("http://localhost:3000") as client:
    client.summarize(text="…")
    client.summarize_batch.submit(texts=["…"]).wait()
"""

from pkgutil import extend_path

from .async_client import AsyncEndpoint, AsyncHTTPClient, AsyncTask
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
    TesseraError,
    TimedOut,
    TooManyRequests,
    Unauthenticated,
    Unavailable,
    Violation,
)
from .files import ResultFile, Upload
from .status import Attempt, Progress, TaskStatus
from .sync_client import SyncEndpoint, SyncHTTPClient, SyncTask
from .version import __version__

# The stubs of gRPC are the package tessera.v1 in a folder of their own; without
# this line Python would look for it in this folder only.
__path__ = extend_path(__path__, __name__)

__all__ = [
    "AlreadyFinished",
    "AlreadyStarted",
    "AsyncEndpoint",
    "AsyncHTTPClient",
    "AsyncTask",
    "Attempt",
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
    "Progress",
    "QueueFull",
    "RequestTooLarge",
    "ResultExpired",
    "ResultFile",
    "SchemaChanged",
    "ServerError",
    "ServerNotReached",
    "SyncEndpoint",
    "SyncHTTPClient",
    "SyncTask",
    "TaskCancelled",
    "TaskFailed",
    "TaskNotFound",
    "TaskStatus",
    "TesseraError",
    "TimedOut",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "Upload",
    "Violation",
    "__version__",
]
