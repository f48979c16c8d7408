"""The sans-I/O protocol between the rules of this client and its drivers.

The rules (what is sent, what may be repeated, what a response means) are generators without I/O.
They yield steps; a driver performs each step and sends the outcome back. One driver is for
threads, one for event loops, so every rule is implemented once. A network error is thrown into
the generator at its step.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

import httpx

from .files import ResultFile
from .status import TaskStatus

T = TypeVar("T")


class Body(Protocol):
    """The body of a request."""

    @property
    def content_type(self) -> str: ...

    @property
    def length(self) -> int | None:
        """In bytes; None when unknown before reading."""
        ...

    @property
    def repeatable(self) -> bool:
        """Whether it can be sent again."""
        ...

    def chunks(self) -> Iterator[bytes]:
        """Yields the body from its beginning. Reads files, so it may block."""
        ...


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Body | None = None
    wait_s: float = 0
    """How long the server may hold the answer back, because it was asked to."""
    to_file: bool = False
    """Whether a good answer is a file, which goes to disk as it comes."""
    streams: bool = False
    """Whether a good answer is left open, for its pieces to be read as they come."""
    harmless: bool = False
    """Whether it may arrive twice: it changes nothing, or the server knows it again."""
    what: str = ""
    """What it does, in words for messages: `submit summarize_batch`."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: httpx.Headers
    content: bytes = b""
    file: ResultFile | None = None
    opened: httpx.Response | None = None
    """Of a request that streams: the response, whose body nobody has read."""


@dataclass(frozen=True)
class Send:
    """Outcome: an `Answer`, or an `httpx.RequestError` thrown."""

    request: Request


@dataclass(frozen=True)
class Read:
    """Outcome: the next bytes of the answer that was opened last, none at its end, or an error as
    for `Send`."""


@dataclass(frozen=True)
class Give:
    """Gives the caller a piece of a streamed result."""

    piece: Any


@dataclass(frozen=True)
class Restart:
    """Tells the caller that the pieces so far are void."""

    attempt: int


@dataclass(frozen=True)
class Pause:
    seconds: float


@dataclass(frozen=True)
class Report:
    """Reports a task's status to the waiting caller."""

    status: TaskStatus


Step: TypeAlias = Send | Read | Give | Restart | Pause | Report

Steps: TypeAlias = Generator[Step, Any, T]
