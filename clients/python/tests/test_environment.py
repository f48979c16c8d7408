"""Where a client calls and with which token, by its arguments and the environment."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from answering import Answering, Reply
from conftest import MakeClient
from tessera import AsyncPlatformClient, SyncPlatformClient, TesseraError

SCHEMA = Reply(200, '{"name": "summarizer", "endpoints": []}', {"content-type": "application/json"})
KEY = "SERVICE_CLOUD_API_KEY"
ENDPOINT = "SERVICE_CLOUD_API_ENDPOINT"


@pytest.fixture(autouse=True)
def logged_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY, raising=False)
    monkeypatch.delenv(ENDPOINT, raising=False)


def log_in(monkeypatch: pytest.MonkeyPatch, endpoint: str, key: str = "tsrp_key") -> None:
    monkeypatch.setenv(KEY, key)
    monkeypatch.setenv(ENDPOINT, endpoint)


def ask(client: Any) -> None:
    """Sends one request; the server knows no such endpoint."""
    with pytest.raises(TesseraError):
        client.nothing()


@pytest.mark.parametrize(
    ("present", "missing"), [(KEY, ENDPOINT), (ENDPOINT, KEY)], ids=["key", "endpoint"]
)
def test_half_a_login_names_the_other_half(
    make: MakeClient, monkeypatch: pytest.MonkeyPatch, present: str, missing: str
) -> None:
    monkeypatch.setenv(present, "http://localhost:3000")
    wanted = f"{present} is set, but {missing} is not"
    with pytest.raises(ValueError, match=wanted):
        make(deployment="acme/summarizer")
    with pytest.raises(ValueError, match=wanted):
        make("http://localhost:3000")
    for platform_client in (SyncPlatformClient, AsyncPlatformClient):
        with pytest.raises(ValueError, match=wanted):
            platform_client()


def test_both_name_the_platform_and_the_token(
    make: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Answering([SCHEMA]) as platform:
        log_in(monkeypatch, platform.url)
        ask(make(deployment="acme/summarizer"))
    assert platform.headers[0]["authorization"] == "Bearer tsrp_key"
    assert platform.headers[0]["tessera-deployment"] == "acme/summarizer"


def test_explicit_arguments_win(make: MakeClient, monkeypatch: pytest.MonkeyPatch) -> None:
    with Answering([SCHEMA]) as platform:
        log_in(monkeypatch, platform.url)
        ask(make(deployment="acme/summarizer", token="mine"))
        ask(make(platform.url, token="mine"))
        ask(make(platform.url, token=""))
        monkeypatch.delenv(KEY)
        ask(make(platform.url, token="mine"))
    seen = [each.get("authorization") for each in platform.headers]
    assert seen == ["Bearer mine", "Bearer mine", None, "Bearer mine"]


def test_the_key_is_sent_to_its_platform_and_the_hosts_below_it_only(
    make: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Answering([SCHEMA]) as ours, Answering([SCHEMA]) as other:
        port = ours.url.rpartition(":")[2]
        log_in(monkeypatch, f"localhost:{port}")
        ask(make(f"http://summarizer.acme.localhost:{port}"))
        ask(make(f"http://127.0.0.1:{port}"))
        ask(make(other.url.replace("127.0.0.1", "other.localhost")))
    assert [each.get("authorization") for each in ours.headers] == ["Bearer tsrp_key", None]
    assert other.headers[0].get("authorization") is None


def test_without_a_url_or_a_login_it_says_what_to_give(
    make: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=f"set {ENDPOINT} and {KEY}"):
        make()
    with pytest.raises(ValueError, match=f"set {ENDPOINT} and {KEY}"):
        SyncPlatformClient()
    log_in(monkeypatch, "tessera.example.com")
    with pytest.raises(ValueError, match="give deployment='organization/name'"):
        make()


@pytest.mark.parametrize(
    "endpoint",
    ["ftp://localhost", "http://name:word@localhost", "http://localhost?a=b", "https://"],
)
def test_an_endpoint_that_is_no_plain_url_is_refused(
    make: MakeClient, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    log_in(monkeypatch, endpoint)
    with pytest.raises(ValueError, match=ENDPOINT):
        make(deployment="acme/summarizer")


def test_a_key_that_no_header_can_carry_is_refused_unquoted(
    make: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    log_in(monkeypatch, "http://localhost:3000", "secret\nvalue")
    with pytest.raises(ValueError, match=f"{KEY} is not a token") as raised:
        make(deployment="acme/summarizer")
    assert "secret" not in str(raised.value)


def test_names_below_localhost_are_this_machine_whatever_the_resolver_says(
    make: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve = socket.getaddrinfo

    def knows_no_names(host: Any, *args: Any, **named: Any) -> Any:
        if "localhost" in str(host):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(host, *args, **named)

    monkeypatch.setattr(socket, "getaddrinfo", knows_no_names)
    with Answering([SCHEMA]) as server:
        port = server.url.rpartition(":")[2]
        ask(make(f"http://summarizer.acme.localhost:{port}"))
    assert server.requests[0] == "GET /schema.json"
    assert server.headers[0]["host"] == f"summarizer.acme.localhost:{port}"
