"""What goes wrong, told apart, and what is repeated."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

import tessera
from answering import HTML, Answering, Reply
from conftest import MakeClient
from servers import ROOT, TOKEN, Server
from tessera import SyncHTTPClient

SCHEMA = Reply(
    200,
    json.dumps(
        {
            "name": "fake",
            "type": "service",
            "routes": [
                {"name": "call", "is_task": False, "input": {"properties": {"a": {}}}},
                {"name": "draw", "output": {"type": "file"}},
                {"name": "later", "is_task": True, "input": {"properties": {"a": {}}}},
            ],
        }
    ),
    {"content-type": "application/json"},
)

SUBMITTED = Reply(202, '{"task_id": "1", "status": "queued", "expires_at": null}')


def refused(status: int, reason: str, after_s: int | None = None) -> Reply:
    info = {"reason": reason, "domain": "tessera"}
    details = [{"type": "google.rpc.ErrorInfo", "value": "", "debug": info}]
    body = json.dumps({"code": "unavailable", "message": "not now", "details": details})
    return Reply(status, body, {} if after_s is None else {"retry-after": str(after_s)})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tessera.repeat.FIRST_PAUSE_S", 0.01)


def test_a_web_page_is_no_tessera_server(make: MakeClient) -> None:
    with Answering([HTML]) as other:
        client = make(other.url)
        for act in (
            lambda: client.greet(name="Ada"),
            client.endpoints,
            lambda: client.wait_ready(timeout=5),
            client.task("add", "1").get_status,
        ):
            with pytest.raises(tessera.NotATesseraServer, match="check the URL"):
                act()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(404, "<html>", {"content-type": "text/html"}), tessera.NotATesseraServer),
        (Reply(200, '{"swagger": "2.0"}'), tessera.NotATesseraServer),
        (Reply(302, "", {"location": "https://other.example"}), tessera.NotATesseraServer),
        (Reply(502, "<html>", {"content-type": "text/html"}), tessera.Unavailable),
        (Reply(429, "slow down"), tessera.TooManyRequests),
    ],
)
def test_what_others_answer_is_told_apart(
    make: MakeClient, reply: Reply, kind: type[Exception]
) -> None:
    with Answering([reply]) as other, pytest.raises(kind):
        make(other.url, retries=1).endpoints()


def test_a_web_page_is_no_result(make: MakeClient) -> None:
    with Answering([SCHEMA, HTML]) as other:
        client = make(other.url)
        for act in (
            lambda: client.call(a=1),
            lambda: client.draw(a=1),
            lambda: client.later.submit(a=1),
            client.task("later", "1").get,
        ):
            with pytest.raises(tessera.NotATesseraServer):
                act()


def test_what_cannot_be_sent_is_not_tried_again(make: MakeClient, server: Server) -> None:
    with pytest.raises(tessera.TesseraError, match="cannot be sent"):
        make(server.url, token="two\nlines").endpoints()


def test_a_url_that_is_none_is_refused_at_once(make: MakeClient) -> None:
    for url in ("localhost:3000", "ftp://localhost", "http://", ""):
        with pytest.raises(ValueError, match="is no URL of a deployment"):
            make(url)


@pytest.mark.parametrize(("status", "reason"), [(429, "QUEUE_FULL"), (503, "STORAGE_UNAVAILABLE")])
def test_a_submit_is_repeated_with_one_key(make: MakeClient, status: int, reason: str) -> None:
    with Answering([SCHEMA, *[refused(status, reason)] * 3, SUBMITTED]) as server:
        client = make(server.url)
        assert client.later.submit(a=1).id == "1"
        assert len(server.requests) == 5
        keys = {headers["idempotency-key"] for headers in server.headers[1:]}
        assert len(keys) == 1
        assert client.later.submit(a=1).id == "1"
        assert server.headers[-1]["idempotency-key"] not in keys


def test_requests_say_who_sends_them_and_for_which_deployment(make: MakeClient) -> None:
    with Answering([SCHEMA]) as server:
        make(server.url, token="a-token", deployment="acme/fake").endpoints()
        make(server.url).endpoints()
    first, second = server.headers
    assert first["authorization"] == "Bearer a-token"
    assert first["tessera-deployment"] == "acme/fake"
    assert first["user-agent"].startswith("tessera-platform/")
    assert not {"authorization", "tessera-deployment"} & set(second)


def test_the_server_says_when_to_come_again(make: MakeClient) -> None:
    with Answering([SCHEMA, refused(429, "QUEUE_FULL", after_s=1), SUBMITTED]) as server:
        begun = time.monotonic()
        make(server.url).later.submit(a=1)
        assert time.monotonic() - begun >= 1
    with Answering([SCHEMA, refused(429, "QUEUE_FULL", after_s=600)]) as server:
        with pytest.raises(tessera.QueueFull) as caught:
            make(server.url).later.submit(a=1)
        assert caught.value.retry_after_s == 600


@pytest.mark.parametrize(
    ("status", "reason", "tries"),
    [
        (503, "STORAGE_UNAVAILABLE", 1),
        (503, "SHUTTING_DOWN", 1),
        (503, "CALL_FAILED", 1),
        (429, "CALL_FAILED", 1),
        (429, "BUDGET_SPENT", 1),
        (503, "WORKER_LOST", 1),
        (503, "DEPLOYMENT_STOPPED", 1),
        (429, "QUEUE_FULL", 4),
        (503, "NO_WORKER", 4),
    ],
)
def test_an_api_call_is_repeated_only_if_it_cannot_have_begun(
    make: MakeClient, status: int, reason: str, tries: int
) -> None:
    with Answering([SCHEMA, refused(status, reason)]) as server:
        with pytest.raises(tessera.TesseraError):
            make(server.url, retries=3).call(a=1)
        assert server.requests.count("POST /call") == tries


def test_a_proxy_that_gives_up_on_an_api_call_is_not_asked_again(make: MakeClient) -> None:
    with Answering([SCHEMA, Reply(504, "<html>")]) as server:
        with pytest.raises(tessera.Unavailable, match="proxy"):
            make(server.url).call(a=1)
        assert server.requests.count("POST /call") == 1


def test_a_task_whose_function_said_unavailable_is_not_asked_again(make: MakeClient) -> None:
    with Answering([SCHEMA, refused(503, "TASK_FAILED")]) as server:
        with pytest.raises(tessera.TaskFailed):
            make(server.url).task("later", "1").get()
        assert len(server.requests) == 2


def test_a_token_that_ends_between_submit_and_get(make: MakeClient, server: Server) -> None:
    client = make(server.url, token=TOKEN)
    task = client.add.submit(numbers=[1, 2])
    client.token = "a-token-that-has-expired"
    for act in (task.get_status, task.get, lambda: task.wait(timeout=5), task.cancel, task.retry):
        with pytest.raises(tessera.Unauthenticated, match=r"client\.token"):
            act()
    client.token = TOKEN
    assert task.wait(timeout=30) == 3


def test_a_result_that_has_expired_is_told_from_a_task_that_never_was(
    make: MakeClient, server: Server
) -> None:
    client = make(server.url, token=TOKEN)
    task = client.brief.submit()
    assert task.wait(timeout=30) == "soon gone"
    ends = task.get_status().expires_at
    while ends.timestamp() > time.time():
        time.sleep(0.05)
    deadline = time.monotonic() + 30
    with pytest.raises(tessera.ResultExpired, match="was kept until"):
        while time.monotonic() < deadline:
            task.get()
    with pytest.raises(tessera.TaskNotFound, match="check the id") as caught:
        client.task("brief", task.id).get()
    assert type(caught.value) is tessera.TaskNotFound


def test_a_server_that_forgot_its_tasks_is_told_from_one_where_they_expired(
    make: MakeClient,
) -> None:
    with Server() as first:
        client = make(first.url)
        task = client.add.submit(numbers=[1])
        task.wait(timeout=30)
        first.stop()
        with (
            Server(port=first.port),
            pytest.raises(tessera.TaskNotFound, match="lost its memory") as caught,
        ):
            task.get()
        assert type(caught.value) is tessera.TaskNotFound


def test_a_full_queue_is_told_with_when_to_come_again(make: MakeClient, server: Server) -> None:
    client = make(server.url, token=TOKEN, retries=0)
    held = []
    with pytest.raises(tessera.QueueFull) as caught:
        for _ in range(10):
            held.append(client.narrow.submit())
    assert caught.value.retry_after_s is not None
    for task in held:
        task.cancel(abort=True)


CHANGING = """
import {{ api, service, task }} from "tessera-platform";
import * as z from "zod";
export default service({{ name: "changing", endpoints: {{
  say: api({{ input: {{ {name}: z.string() }}, output: z.string() }}, JSON.stringify),
  {extra}
}} }});
"""


def test_a_schema_that_changed_under_a_running_client(make: MakeClient, tmp_path: Path) -> None:
    path = tmp_path / "service.ts"
    path.write_text(CHANGING.format(name="word", extra=""))
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    with Server(service=path) as first:
        client = make(first.url)
        assert client.say(word="a") == '{"word":"a"}'
        first.stop()
        extra = "more: task({ output: z.int() }, () => 1),"
        path.write_text(CHANGING.format(name="text", extra=extra))
        with Server(service=path, port=first.port):
            with pytest.raises(tessera.SchemaChanged, match="call again") as caught:
                client.say(word="a")
            assert "text" in [each.field for each in caught.value.violations]
            with pytest.raises(tessera.BadArguments) as plain:
                client.say(word="a")
            assert type(plain.value) is tessera.BadArguments
            assert client.say(text="a") == '{"text":"a"}'
            assert client.more.submit().wait(timeout=30) == 1


def test_a_deployment_that_is_starting_is_waited_for(make: MakeClient) -> None:
    starting = refused(503, "NO_WORKER", after_s=1)
    with Answering([starting, SCHEMA]) as server:
        make(server.url).wait_ready(timeout=10)
        assert server.requests == ["GET /readyz", "GET /readyz", "GET /schema.json"]


def test_waiting_for_a_task_ends_in_time_and_the_task_goes_on(client: Any) -> None:
    task = client.hold.submit()
    with pytest.raises(tessera.TimedOut, match=r"has not ended within 0.3 s"):
        task.wait(timeout=0.3)
    with pytest.raises(TimeoutError):
        task.wait(timeout=0.1, on_progress=lambda _: None)
    assert not task.get_status().is_final
    task.cancel(abort=True)


def test_arguments_are_given_as_to_a_function_of_python(client: Any) -> None:
    assert client.greet("Ada", 2) == client.greet("Ada", times=2) == "Hello Ada!Hello Ada!"
    with pytest.raises(TypeError, match="takes 2 arguments"):
        client.greet("Ada", 2, 3)
    with pytest.raises(TypeError, match="more than one value for 'name'"):
        client.greet("Ada", name="Ada")
    with pytest.raises(tessera.BadArguments, match="value is no JSON"):
        client.echo(value=float("nan"))
    assert client.between(**{"from": 1, "to": 3}) == 2


def test_one_key_stands_for_one_call(client: Any) -> None:
    once = client.add.with_options(idempotency_key=f"key-{time.time_ns()}")
    assert once.submit(numbers=[1]).id == once.submit(numbers=[1]).id
    with pytest.raises(tessera.Conflict) as caught:
        once.submit(numbers=[2])
    assert caught.value.reason == "IDEMPOTENCY_KEY_REUSED"


def test_every_error_is_of_one_family_and_has_a_text() -> None:
    kinds = [each for each in vars(tessera.errors).values() if isinstance(each, type)]
    errors = [each for each in kinds if issubclass(each, Exception)]
    assert len(errors) > 20
    assert all(issubclass(each, tessera.TesseraError) and each.__doc__ for each in errors)
    assert all(each.__name__ in tessera.__all__ for each in errors)


def test_attributes_of_python_are_no_endpoints(server: Server) -> None:
    with SyncHTTPClient(server.url) as client:
        assert not hasattr(client, "__wrapped__")
        assert client.endpoint("close").name == "close"
    assert Path(tessera.__file__).with_name("py.typed").exists()
