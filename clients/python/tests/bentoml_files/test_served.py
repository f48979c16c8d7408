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
def hosted_routes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with tessera_serve("routes.py", tmp_path_factory.mktemp("hosted")) as client:
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


def test_calls_the_method_whose_route_a_path_is(hosted_routes: httpx.Client) -> None:
    def call(path: str) -> object:
        return hosted_routes.post(path, json={"x": 1}).text

    assert (call("/v1/predict"), call("/predict"), call("/predict_v2")) == ("old", "new", "new")
    submitted = hosted_routes.post("/job/submit", json={"x": 1}).json()
    asked = {"params": {"task_id": submitted["task_id"], "wait": 30}}
    assert hosted_routes.get("/job/get", **asked).text == "new job"


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
