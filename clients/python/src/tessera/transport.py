"""The common part of both drivers: builds httpx requests and receives responses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import httpx

from .errors import NotATesseraServer
from .files import Spool
from .repeat import Policy
from .wire import Answer, Request

CHUNK_BYTES = 256 * 1024

MAX_IN_MEMORY_BYTES = 256 * 1024 * 1024
"""Of an answer that is no file: far above what Tessera answers."""

_CONNECT_TIMEOUT_S = 10.0


def http_options(url: str, headers: Mapping[str, str], version: str) -> dict[str, Any]:
    """Options for both kinds of httpx client."""
    agent = f"tessera-platform/{version} python-httpx/{httpx.__version__}"
    parts = urlsplit(url)
    known = {"user-agent": agent, **headers}
    if _is_loopback_name(url):
        known["host"] = parts.netloc.rpartition("@")[2]
        url = parts._replace(netloc=_on_this_machine(parts)).geturl()
    return {"base_url": url, "headers": known, "follow_redirects": False}


def _is_loopback_name(url: str) -> bool:
    """Names below `localhost` are this machine (RFC 6761, 6.3), and not every system knows it."""
    return (urlsplit(url).hostname or "").endswith(".localhost")


def _on_this_machine(parts: SplitResult) -> str:
    user, at, _ = parts.netloc.rpartition("@")
    port = "" if parts.port is None else f":{parts.port}"
    return f"{user}{at}127.0.0.1{port}"


def request_options(request: Request, policy: Policy, token: str | None) -> dict[str, Any]:
    """The arguments of an httpx request, except its content."""
    headers = dict(request.headers)
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    if request.body is not None:
        headers["content-type"] = request.body.content_type
        if request.body.length is not None:
            headers["content-length"] = str(request.body.length)
    read_s = policy.timeout_s + request.wait_s
    connect_s = min(policy.timeout_s, _CONNECT_TIMEOUT_S)
    return {
        "method": request.method,
        "url": request.path,
        "params": dict(request.query),
        "headers": headers,
        "timeout": httpx.Timeout(policy.timeout_s, read=read_s, connect=connect_s),
        # The name that the certificate has to have, if the address is not the URL's.
        "extensions": (
            {"sni_hostname": urlsplit(policy.url).hostname} if _is_loopback_name(policy.url) else {}
        ),
    }


class Receiver:
    """Collects the chunks of one response: in memory, or on disk for a file."""

    def __init__(self, request: Request, response: httpx.Response) -> None:
        self._response = response
        disposition = response.headers.get("content-disposition", "")
        good = response.status_code == 200
        self.to_file = good and (request.to_file or disposition.startswith("attachment"))
        self._spool = Spool() if self.to_file else None
        self._content = bytearray()

    def take(self, chunk: bytes) -> None:
        if self._spool is not None:
            self._spool.write(chunk)
            return
        self._content += chunk
        if len(self._content) > MAX_IN_MEMORY_BYTES:
            raise NotATesseraServer(
                f"the answer has more than {MAX_IN_MEMORY_BYTES} bytes and is no file: "
                "check the URL of the client"
            )

    def finish(self) -> Answer:
        headers = self._response.headers
        if self._spool is None:
            return Answer(self._response.status_code, headers, bytes(self._content))
        kind = headers.get("content-type", "application/octet-stream")
        name = _file_name(headers.get("content-disposition", ""))
        file = self._spool.finish(name=name, content_type=kind)
        return Answer(self._response.status_code, headers, file=file)

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and self._spool is not None:
            self._spool.discard()


def _file_name(disposition: str) -> str | None:
    """RFC 6266: the encoded name takes precedence. Folders in the name are dropped."""
    encoded = re.search(r"filename\*=(?:UTF-8|utf-8)''([^;\s]+)", disposition)
    plain = re.search(r'filename="([^"]*)"', disposition)
    name = unquote(encoded[1]) if encoded else plain[1] if plain else ""
    return re.split(r"[/\\]", name.replace("\0", ""))[-1] or None
