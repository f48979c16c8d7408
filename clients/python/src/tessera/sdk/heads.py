"""The request that a call came with, and what its function says of the answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from http.cookies import SimpleCookie
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from .executable import RequestHead, ResponseHead


class Headers(Mapping[str, str]):
    """Headers by name, in whatever case; of one that came several times, the first value."""

    __slots__ = ("_fields",)

    def __init__(self, fields: Iterable[tuple[str, str]] = ()) -> None:
        self._fields = [(name.lower(), value) for name, value in fields]

    def __getitem__(self, name: str) -> str:
        for value in self.getlist(name):
            return value
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for name, _ in self._fields))

    def __len__(self) -> int:
        return len({name for name, _ in self._fields})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._fields!r})"

    def getlist(self, name: str) -> list[str]:
        """All values of a header."""
        wanted = name.lower()
        return [value for each, value in self._fields if each == wanted]


class ResponseHeaders(Headers, MutableMapping[str, str]):
    """Headers of an answer. Setting one replaces it; ``append`` adds another of the same name."""

    __slots__ = ()

    def __init__(self, head: ResponseHead) -> None:
        self._fields = head.headers

    def __setitem__(self, name: str, value: str) -> None:
        kept = [field for field in self._fields if field[0] != name.lower()]
        self._fields[:] = [*kept, (name.lower(), str(value))]

    def __delitem__(self, name: str) -> None:
        kept = [field for field in self._fields if field[0] != name.lower()]
        if len(kept) == len(self._fields):
            raise KeyError(name)
        self._fields[:] = kept

    def append(self, name: str, value: str) -> None:
        """Adds a header, besides those of the same name."""
        self._fields.append((name.lower(), str(value)))


class CallRequest:
    """The request that a call came with. Over gRPC and Connect it is that of the RPC."""

    __slots__ = ("client", "headers", "method", "url")

    def __init__(self, head: RequestHead) -> None:
        self.method = head.method
        self.url = head.url
        """With scheme, host and query."""
        self.headers = Headers(head.headers)
        """Those that the option ``headers`` names."""
        self.client = head.client
        """The address of the caller; None where it is unknown."""

    @property
    def path(self) -> str:
        """The path of the URL, as it was sent."""
        return urlsplit(self.url).path

    @property
    def query_params(self) -> dict[str, str]:
        """The parameters of the query; of one that came several times, the last value."""
        return dict(parse_qsl(urlsplit(self.url).query, keep_blank_values=True))

    @property
    def cookies(self) -> dict[str, str]:
        """The cookies, where ``headers`` names ``cookie``."""
        pairs = (pair.partition("=") for pair in self.headers.get("cookie", "").split(";"))
        return {name.strip(): value.strip() for name, _, value in pairs if name.strip()}


class CallResponse:
    """What is said of the answer besides its content. Over gRPC and Connect it has no place.

    In a function that yields, it counts before the first piece. What belongs to the connection or
    to the platform is left out, such as ``content-length`` and ``access-control-allow-origin``.
    """

    __slots__ = ("_head", "headers")

    def __init__(self, head: ResponseHead) -> None:
        self._head = head
        self.headers = ResponseHeaders(head)
        """Headers and cookies, at most 100 and 16 KiB."""

    @property
    def status_code(self) -> int:
        """From 200 to 599. In a task, 400 and above is a failure."""
        return 200 if self._head.status is None else self._head.status

    @status_code.setter
    def status_code(self, status: int) -> None:
        self._head.status = int(status)

    def set_cookie(
        self,
        key: str,
        value: str,
        *,
        max_age: int | None = None,
        path: str = "/",
        secure: bool = False,
        httponly: bool = False,
        samesite: Literal["lax", "strict", "none"] = "lax",
    ) -> None:
        """Sets a cookie of the deployment's own host."""
        cookie: SimpleCookie = SimpleCookie({key: value})
        morsel = cookie[key]
        morsel["path"] = path
        morsel["samesite"] = samesite
        if max_age is not None:
            morsel["max-age"] = max_age
        if secure:
            morsel["secure"] = True
        if httponly:
            morsel["httponly"] = True
        self.headers.append("set-cookie", morsel.OutputString())
