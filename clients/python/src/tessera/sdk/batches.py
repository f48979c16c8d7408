"""Batches: a function takes several calls at once, and returns one result for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from typing_extensions import is_typeddict

from .context import Aborted, Context
from .executable import IncomingCall, ServiceError
from .heads import CallRequest, CallResponse
from .options import Duration, format_duration, milliseconds_of
from .unknown import known_fields

MAX_BATCH_SIZE = 1_000
MAX_WAIT_MS = 60_000
MAX_BYTES = 1024**3
DEFAULT_MAX_BYTES = 64 * 1024**2


@known_fields
@dataclass(frozen=True)
class Batch:
    """How calls are put together: ``@api(batch=Batch(max_size=32))``.

    - ``max_size``: the most calls that are taken at once.
    - ``max_wait``: how long the oldest waits for others, at most, while a worker is free. Under
      load nothing waits.
    - ``max_bytes``: of all their arguments as JSON.
    - ``key``: the dotted path of an argument; only calls with the same value of it are put
      together.
    - ``on_error``: what happens when the function raises: ``split`` runs each call once alone, so
      that one bad item cannot fail the others; ``fail`` fails all.
    """

    max_size: int = 32
    max_wait: Duration = "10ms"
    max_bytes: int = DEFAULT_MAX_BYTES
    key: str | None = None
    on_error: Literal["split", "fail"] = "split"

    def manifest(self, place: str) -> dict[str, Any]:
        """As ``BatchManifest`` of the node has it."""
        wait_ms = milliseconds_of(self.max_wait)
        _check_count(self.max_size, MAX_BATCH_SIZE, f"{place}: batch.max_size")
        if wait_ms is None or not 0 <= wait_ms <= MAX_WAIT_MS:
            most = format_duration(MAX_WAIT_MS)
            raise ServiceError(f"{place}: batch.max_wait must be a duration of at most {most}")
        _check_count(self.max_bytes, MAX_BYTES, f"{place}: batch.max_bytes")
        if self.on_error not in ("split", "fail"):
            raise ServiceError(f'{place}: batch.on_error must be "split" or "fail"')
        manifest: dict[str, Any] = {
            "maxSize": self.max_size,
            "maxWaitMs": wait_ms,
            "maxBytes": self.max_bytes,
            "onError": self.on_error,
        }
        if self.key is not None:
            if not isinstance(self.key, str) or self.key == "":
                raise ServiceError(f"{place}: batch.key must be the dotted path of an argument")
            parts = self.key.split(".")
            escaped = (part.replace("~", "~0").replace("/", "~1") for part in parts)
            manifest["keyPointer"] = "".join(f"/{part}" for part in escaped)
        return manifest


class BatchContext(Context):
    """The context of a batch; ``item(i)`` is that of one of its calls."""

    __slots__ = ("_items",)

    def __init__(self, calls: Sequence[IncomingCall]) -> None:
        super().__init__(calls[0])
        self._items = [Context(call) for call in calls]

    def __len__(self) -> int:
        return len(self._items)

    def item(self, index: int) -> Context:
        """The context of the call whose arguments stand at this index."""
        return self._items[index]

    @property
    def request(self) -> CallRequest:
        """Each call has its own: ``item(i).request``."""
        raise RuntimeError("a batch has a request for each call: use item(i).request")

    @property
    def response(self) -> CallResponse:
        """Each call has its own: ``item(i).response``."""
        raise RuntimeError("a batch has a response for each call: use item(i).response")

    @property
    def aborted(self) -> bool:
        """True when nobody waits for any of the results."""
        return all(item.aborted for item in self._items)

    def check(self) -> None:
        """Raises ``Aborted`` if all calls were aborted."""
        if self.aborted:
            raise Aborted("all calls of the batch were aborted")


def _check_count(value: object, most: int, what: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ServiceError(f"{what} must be a whole number from 1 to {most:,}, not {value!r}")


def item_hint(hint: Any, at: str) -> Any:
    """The type of one item, of the hint of a parameter that takes a list of them."""
    if get_origin(hint) is not list or len(get_args(hint)) != 1:
        raise ServiceError(
            f"{at}: with batch each parameter is a list with the argument of each call, "
            "such as list[str]"
        )
    return get_args(hint)[0]


def result_hint(hint: Any, place: str) -> Any:
    """The type of one result, of the hint of a function that returns a list of them."""
    if hint is Any:
        return Any
    if get_origin(hint) not in (list, Sequence) or len(get_args(hint)) != 1:
        raise ServiceError(
            f"{place}: with batch the function returns a list with the result of each call, "
            "such as list[str]"
        )
    return _without_exceptions(get_args(hint)[0])


def is_model(hint: Any) -> bool:
    """True for a type whose members are the arguments of a call."""
    if is_typeddict(hint):
        return True
    return isinstance(hint, type) and (issubclass(hint, BaseModel) or is_dataclass(hint))


def _without_exceptions(hint: Any) -> Any:
    """``Vector`` of ``Vector | Exception``."""
    kept = [
        each
        for each in get_args(hint)
        if not (isinstance(each, type) and issubclass(each, BaseException))
    ]
    if get_origin(hint) is None or len(kept) == len(get_args(hint)):
        return hint
    union = kept[0]
    for each in kept[1:]:
        union = union | each
    return union
