"""``tessera serve`` answers as ``bentoml serve`` does: over HTTP, byte for byte."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest.mock import ANY

import bentoml
import httpx
import pytest

import tessera
from cases import EIGHT, ROOTS, Case, picture
from conftest import Hosted
from serving import ask, tessera_serve

pytestmark = pytest.mark.skipif(
    "TESSERA_COMMAND" not in os.environ, reason="TESSERA_COMMAND names no server"
)


@pytest.fixture(scope="module")
def hosted_eight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with tessera_serve("eight.py:Eight", tmp_path_factory.mktemp("hosted")) as client:
        yield client


@pytest.fixture(scope="module")
def hosted_roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with tessera_serve("roots.py", tmp_path_factory.mktemp("hosted")) as client:
        yield client


@pytest.fixture(scope="module")
def hosted_routed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with tessera_serve("routed.py", tmp_path_factory.mktemp("hosted")) as client:
        yield client


@pytest.mark.parametrize("case", EIGHT, ids=str)
def test_answers_what_bentoml_serve_answers(
    case: Case, hosted_eight: httpx.Client, served_eight: httpx.Client
) -> None:
    compare(case, hosted_eight, served_eight)


@pytest.mark.parametrize("case", ROOTS, ids=str)
def test_takes_a_value_as_the_body_like_bentoml_serve(
    case: Case, roots: Hosted, hosted_roots: httpx.Client, served_roots: httpx.Client
) -> None:
    compare(case, hosted_roots, served_roots)


PICTURE = picture()


@pytest.mark.parametrize(
    ("path", "request_", "answer"),
    [
        ("/text", {"content": b'{"name": "Ada"}'}, None),
        ("/text", {"content": b'{"name": "Ada"}', "headers": {"content-type": "text/plain"}}, None),
        ("/text", {"content": b'{"name": "Ada"}', "headers": {"content-type": "*/*"}}, None),
        ("/text", {"data": {"name": "Ada", "times": "2"}}, None),
        ("/text", {"data": {"name": "12"}}, "Grüezi 12"),
        ("/text", {"files": {"name": ("blob", b'"Ada"', "application/json")}}, None),
        ("/maybe", {"content": b""}, None),
        ("/maybe", {"content": b"", "headers": {"content-type": "application/octet-stream"}}, None),
        ("/maybe", {"data": {"text": "12"}}, "12"),
        ("/image", {"files": {"picture": ("a.png", PICTURE, "binary/octet-stream")}}, None),
        ("/image", {"files": {"picture": ("a.png", PICTURE, "text/plain")}}, None),
        ("/image", {"files": {"picture": ("a.png", PICTURE, "IMAGE/PNG")}}, None),
        ("/image", {"files": {"picture": ("a.png", PICTURE, "image/jpg")}}, PICTURE),
        ("/image", {"files": {"picture": ("a.png", PICTURE, "image/x-png")}}, PICTURE),
    ],
)
def test_reads_bodies_of_other_names_like_bentoml_serve(
    path: str,
    request_: dict[str, Any],
    answer: str | bytes | None,
    hosted_eight: httpx.Client,
    served_eight: httpx.Client,
) -> None:
    """``answer``: where BentoML refuses what is right."""
    ours = hosted_eight.post(path, **request_)
    theirs = served_eight.post(path, **request_)
    if bentoml.__version__.startswith("1.3.") and theirs.status_code == 500:
        # It knew fewer names of JSON.
        assert ours.status_code == 200
        return
    if answer is None:
        assert (
            (ours.status_code, ours.content) == (theirs.status_code, theirs.content) == (200, ANY)
        )
        return
    assert theirs.status_code >= 400
    assert ours.status_code == 200, ours.text
    if path != "/image":
        assert answer in ours.text


def test_answers_each_call_of_a_batch(hosted_eight: httpx.Client) -> None:
    def double(number: int) -> httpx.Response:
        return hosted_eight.post("/double", json={"numbers": [number]})

    with ThreadPoolExecutor(20) as callers:
        answers = list(callers.map(double, range(20)))
    assert [each.status_code for each in answers] == [200] * 13 + [500] + [200] * 6
    assert [each.json() for each in answers if each.is_success] == [
        [2 * number] for number in range(20) if number != 13
    ]


def compare(case: Case, ours: httpx.Client, theirs: httpx.Client) -> None:
    if case.broken_in == bentoml.__version__:
        pytest.skip("BentoML's own server fails with it")
    expected, answer = ask(theirs, case), ask(ours, case)
    assert answer.status_code == expected.status_code
    for name in ("x-model", "set-cookie"):
        assert answer.headers.get_list(name) == expected.headers.get_list(name)
    if case.is_lines:
        # BentoML sends nothing between the values, by which nobody can tell them apart.
        assert answer.text.splitlines() == expected.text.replace("}{", "}\n{").splitlines()
    elif not case.fails:
        assert answer.content == expected.content


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/predict", "/predict/", "/v1/predict", "/predict_v2", "/job", "/v1/job", "/job_v2"),
        *("/api/v1/score", "/metrics/daily", "/v1/model:predict", "/v1%2Fmodel%3Apredict"),
        *(
            "/v1.0",
            "/v1/submit",
            "/größe",
            "/size",
            "/_hidden",
            "/x_hidden",
            "/länge",
            "/l%C3%A4nge",
            "/slash",
            "/slash/",
            "/slash//",
            "/with a space",
            "/with%20a%20space/",
            "/empty//segment",
            "/empty/segment",
            "/100%25 %22odd%22 %3C%7C%3E%5E%60%5B1%5D",
            "/a%2520b",
            "/a%20b",
        ),
        *(f"/{'long' * 30}", "/plain", "/plain/", "/verb", "/v1", "/api/v1/other"),
    ],
)
def test_calls_at_a_path_what_bentoml_serve_calls(
    path: str, hosted_routed: httpx.Client, served_routed: httpx.Client
) -> None:
    ours = hosted_routed.post(path, json={"x": 1})
    theirs = served_routed.post(path, json={"x": 1}, follow_redirects=True)
    assert ours.status_code == theirs.status_code
    if theirs.status_code == 200:
        assert ours.content == theirs.content


@pytest.mark.parametrize("route", ["/job", "/v1/job"])
def test_runs_the_task_at_a_path_that_bentoml_serve_runs(
    route: str, hosted_routed: httpx.Client, served_routed: httpx.Client
) -> None:
    compare(Case("", {"x": 2}, route=route, is_task=True), hosted_routed, served_routed)


def test_finds_a_task_where_its_answers_say(hosted_routed: httpx.Client) -> None:
    for route in ("", "/v1/job", "/100%25%20%22odd%22%20%3C%7C%3E%5E%60%5B1%5D"):
        submitted = hosted_routed.post(f"{route}/submit", json={"x": 3})
        assert submitted.headers["location"].startswith(f"{route}/status?task_id=")
        assert hosted_routed.get(submitted.headers["location"]).status_code == 200


def test_says_where_an_endpoint_is_that_is_asked_for_by_its_name(
    hosted_routed: httpx.Client,
) -> None:
    answer = hosted_routed.post("/predict_v2", json={"x": 1})
    assert answer.json()["message"].endswith("its service gave it the path /predict")


def test_describes_each_endpoint_at_its_path(hosted_routed: httpx.Client) -> None:
    routes = {
        each["name"]: each["route"] for each in hosted_routed.get("/schema.json").json()["routes"]
    }
    paths = hosted_routed.get("/docs.json").json()["paths"]
    assert routes["predict"] == "/v1/predict"
    assert routes["size"] == "/gr%C3%B6%C3%9Fe"
    assert {name: paths[route]["post"]["operationId"] for name, route in routes.items()} == {
        name: name for name in routes
    }
    assert "/submit" in paths and "/v1/job/get" in paths and "/predict_v2" not in paths


def test_is_called_by_name_by_clients_that_read_its_description(
    hosted_routed: httpx.Client,
) -> None:
    url = str(hosted_routed.base_url)
    with bentoml.SyncHTTPClient(url) as theirs:
        assert (theirs.predict(x=1), theirs.predict_v2(x=1)) == ("old 1", "new 1")
        assert theirs.size(x=1) == "size 1"
    with tessera.SyncHTTPClient(url) as ours:
        assert (ours.predict(x=1), ours.predict_v2(x=1)) == ("old 1", "new 1")
        assert (ours.size(x=1), ours.root(x=1)) == ("size 1", "root 1")
        task = ours.job.submit(x=1)
        assert task.wait() == "old job 1"
        assert ours.job_v2.submit(x=1).wait() == "new job 1"
    with tessera.SyncHTTPClient(url) as later:
        assert later.job.task(task.id).wait() == "old job 1"


def test_answers_the_probes_of_bentoml_serve(
    hosted_routed: httpx.Client, served_routed: httpx.Client
) -> None:
    for path in ("/livez", "/healthz", "/readyz"):
        for method in ("GET", "HEAD", "POST"):
            ours, theirs = (
                client.request(method, path).status_code
                for client in (hosted_routed, served_routed)
            )
            assert (path, method, ours) == (path, method, theirs)
