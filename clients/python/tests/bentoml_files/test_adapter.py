"""What the adapter makes of services, besides their answers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Generator
from datetime import date
from itertools import count
from pathlib import Path
from typing import Annotated, Any

import bentoml
import numpy as np
import pytest
from bentoml._internal.models import ModelStore
from bentoml.exceptions import BentoMLException
from bentoml.validators import DType
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse

from calling import body, execute, incoming
from cases import Case
from conftest import Hosted
from tessera.bentoml.adapter import adapt
from tessera.bentoml.turns import Turns
from tessera.sdk.executable import CallError, IncomingFile, ResponseHead, ServiceError

Host = Callable[[Any], Hosted]

# BentoML 1.3 loses the annotations of arguments with the pydantic of today.
IS_ANNOTATED = not bentoml.__version__.startswith("1.3.")
TENSOR = " of float64 of the shape 2 x 2" if IS_ANNOTATED else ""
TEXT_FILE = {"contentType": "text/*"} if IS_ANNOTATED else {}


class Reading(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")
    value: float


def manifest_of(hosted: Hosted, name: str) -> dict[str, Any]:
    return json.loads(json.dumps(hosted.service.endpoints[name].manifest))


def failure_of(hosted: Hosted, case: Case, folder: Path) -> CallError:
    call = incoming(hosted.service, case, folder)
    with pytest.raises(CallError) as caught:
        hosted.run(execute(hosted.service, call))
    return caught.value


@pytest.mark.skipif(not IS_ANNOTATED, reason="BentoML has lost what the arrays are")
def test_large_arrays_come_as_doubles(host: Host, tmp_path: Path) -> None:
    @bentoml.service
    class Arrays:
        @bentoml.api
        def double(self, values: np.ndarray) -> np.ndarray:
            values *= 2
            return values

        @bentoml.api
        def kinds(self, values: Annotated[np.ndarray, DType("float32")], by: np.ndarray) -> str:
            return f"{values.dtype} {values.shape} {by.dtype} {by.shape}"

        @bentoml.api
        def whole(self, values: Annotated[np.ndarray, DType("int64")]) -> str:
            return str(values.dtype)

        @bentoml.api
        def beside(self, values: np.ndarray, by: float = 2.0) -> float:
            return by

    hosted = host(Arrays)
    assert manifest_of(hosted, "kinds")["arrays"] == ["values", "by"]
    assert "arrays" not in manifest_of(hosted, "whole")
    assert "arrays" not in manifest_of(hosted, "beside")

    def answer(name: str, arguments: dict[str, Any]) -> str:
        data = np.array([0.5, 1.5, 2.5, 1e-300]).tobytes()
        kind = "application/vnd.tessera.doubles;shape=2,2"
        call = incoming(hosted.service, Case(name, arguments), tmp_path)
        call.files = [IncomingFile(kind, None, len(data), data=data)]
        return hosted.run(execute(hosted.service, call)).decode()

    assert json.loads(answer("double", {"values": {"$array": 0}})) == [[1, 3], [5, 2e-300]]
    assert json.loads(answer("double", {"values": [1, 2]})) == [2, 4]
    by_json = {"values": {"$array": 0}, "by": [1, 2]}
    assert answer("kinds", by_json) == "float32 (2, 2) int64 (2,)"
    with pytest.raises(CallError, match="by"):
        answer("kinds", {"values": {"$array": 0}})


def test_names_a_service_as_a_dns_label(eight: Hosted) -> None:
    @bentoml.service
    class HTTPReader2:
        pass

    assert eight.service.manifest["name"] == "eight"
    assert eight.service.manifest["description"] == "Of each kind one."
    assert adapt(HTTPReader2).manifest["name"] == "http-reader2"


@pytest.mark.parametrize(
    ("options", "workers"),
    [({}, 1), ({"workers": 3}, 3), ({"workers": "cpu_count"}, os.cpu_count())],
)
def test_asks_for_as_many_processes_as_bentoml_starts(
    options: dict[str, Any], workers: int
) -> None:
    @bentoml.service(**options)
    class Asks:
        @bentoml.api
        def go(self) -> str:
            return ""

    assert adapt(Asks).manifest["workers"] == workers


def test_describes_arguments_in_json_schema_alone(eight: Hosted) -> None:
    text = json.dumps([each["input"] for each in eight.service.manifest["endpoints"]])
    assert not any(f'"type": "{each}"' in text for each in ("file", "tensor", "dataframe"))
    assert manifest_of(eight, "array")["input"]["properties"]["numbers"] == {
        "type": "array",
        "items": {},
        "title": "Numbers",
        "description": f"A tensor as nested lists{TENSOR}.",
    }


def test_keeps_the_description_of_bentoml_as_it_is(eight: Hosted) -> None:
    from eight import Eight

    assert eight.service.manifest["compat"] == {"bentoml": Eight.schema()}


def test_lists_files_apart_from_values(eight: Hosted) -> None:
    path = manifest_of(eight, "path")
    assert path["files"] == {"document": {"required": True, "array": False, **TEXT_FILE}}
    assert path["input"]["properties"]["document"]["format"] == "binary"
    assert path["outputFile"] == {"contentType": "text/plain"}
    assert manifest_of(eight, "several")["files"] == {"files": {"required": True, "array": True}}
    assert manifest_of(eight, "image")["outputFile"] == {"contentType": "image/*"}


def test_reads_limits_from_the_configuration(eight: Hosted) -> None:
    names = ("timeoutMs", "concurrency", "queueLimit")
    limits = {
        name: [manifest_of(eight, name)[each] for each in names] for name in eight.service.endpoints
    }
    # Two threads, and a call that is there when one is free.
    assert limits["text"] == [30_000, 3, 50]
    assert limits["model"] == [30_000, 50, 50]
    assert limits["tokens"] == [86_400_000, 50, 50]
    assert limits["count"] == [86_400_000, 2, 50]


def with_cors(**cors: Any) -> Any:
    said = {f"access_control_{name}": value for name, value in cors.items()}

    @bentoml.service(http={"cors": {"enabled": True, **said}})
    class Shared:
        @bentoml.api
        def read(self, text: str) -> str:
            return text

    return Shared


def test_reads_which_pages_of_other_sites_may_call(eight: Hosted) -> None:
    assert "cors" not in eight.service.manifest
    said = {
        "allow_origins": ["https://a.example", "https://b.example"],
        "allow_origin_regex": r"https://.*\.c\.example",
        "allow_credentials": True,
        "allow_methods": ["POST"],
        "allow_headers": "*",
        "expose_headers": ["X-Model"],
        "max_age": 600,
    }
    assert adapt(with_cors(**said)).manifest["cors"] == {
        "origins": ["https://a.example", "https://b.example"],
        "originPattern": r"https://.*\.c\.example",
        "credentials": True,
        "methods": ["POST"],
        "headers": ["*"],
        "exposedHeaders": ["X-Model"],
        "maxAgeSeconds": 600,
    }
    assert adapt(with_cors(allow_origins="*")).manifest["cors"] == {"origins": ["*"]}


@pytest.mark.parametrize(
    ("cors", "said"),
    [
        ({}, "without access_control_allow_origins"),
        ({"allow_origins": [], "allow_origin_regex": r"\Ahttps"}, "cannot read"),
    ],
)
def test_refuses_cors_that_lets_nobody_call(cors: dict[str, Any], said: str) -> None:
    with pytest.raises(ServiceError, match=said):
        adapt(with_cors(**cors))


def test_has_a_gpu_where_the_service_or_one_that_it_depends_on_does() -> None:
    @bentoml.service(resources={"gpu": 1, "gpu_type": "nvidia-tesla-t4"})
    class Model:
        @bentoml.api
        def read(self, text: str) -> str:
            return text

    @bentoml.service(resources={"cpu": "2"})
    class Front:
        model = bentoml.depends(Model)

        @bentoml.api
        def read(self, text: str) -> str:
            return text

    @bentoml.service(resources={"cpu": "2"})
    class Plain:
        @bentoml.api
        def read(self, text: str) -> str:
            return text

    @bentoml.service(resources={"gpu": 0.5})
    class Half:
        model = bentoml.depends(Plain)

        @bentoml.api
        def read(self, text: str) -> str:
            return text

    @bentoml.service(resources={"gpu": 0.29})
    class Both:
        half = bentoml.depends(Half)
        model = bentoml.depends(Model)

        @bentoml.api
        def read(self, text: str) -> str:
            return text

    assert adapt(Model).manifest["gpus"] == 1
    assert adapt(Front).manifest["gpus"] == 1
    assert adapt(Half).manifest["gpus"] == 0.5
    assert adapt(Both).manifest["gpus"] == 1


@pytest.mark.parametrize(("asked", "given"), [(0.29, 0.29), (1 / 3, 0.33), (0.001, 0.01), (1.5, 2)])
def test_has_a_part_of_a_gpu_in_hundredths_and_else_whole_ones(asked: float, given: float) -> None:
    @bentoml.service(resources={"gpu": asked})
    class Model:
        @bentoml.api
        def read(self, text: str) -> str:
            return text

    assert adapt(Model).manifest["gpus"] == given


def test_requires_no_label_for_its_gpu() -> None:
    @bentoml.service(resources={"cpu": "2"})
    class Plain:
        @bentoml.api
        def read(self, text: str) -> str:
            return text

    assert "requires" not in adapt(Plain).manifest


def test_names_the_models_of_hugging_face_that_a_service_has_as_attributes() -> None:
    @bentoml.service
    class Reader:
        weights = bentoml.models.HuggingFaceModel("acme/reader", revision="v2")

        @bentoml.api
        def read(self, text: str) -> str:
            return text

    @bentoml.service
    class FrontDesk:
        reader = bentoml.depends(Reader)
        qwen = bentoml.models.HuggingFaceModel("Qwen/Qwen3-0.6B")

        @bentoml.api
        def read(self, text: str) -> str:
            return text

    assert adapt(FrontDesk).manifest["models"] == {
        "front-desk-qwen": "hf://Qwen/Qwen3-0.6B",
        "reader-weights": "hf://acme/reader@v2",
    }


def test_names_the_models_of_bentomls_store_that_a_service_has_as_attributes(
    tmp_path: Path,
) -> None:
    (store := tmp_path / "models").mkdir()
    within = {"_model_store": ModelStore(store)}
    with bentoml.models.create("reader:v3", **within) as saved:
        Path(saved.path_of("weights.txt")).write_text("weights")

    class Base:
        inherited = bentoml.models.BentoModel("other:latest")

    @bentoml.service
    class Reader(Base):
        newest = bentoml.models.BentoModel("other")
        named = bentoml.models.BentoModel("other:1.0")
        stored = bentoml.models.get("reader", **within)

        @bentoml.api
        def read(self, text: str) -> str:
            return text

    assert adapt(Reader).manifest["models"] == {
        "reader-inherited": "bentoml://other:latest",
        "reader-named": "bentoml://other:1.0",
        "reader-newest": "bentoml://other",
        "reader-stored": "bentoml://reader:v3",
    }


def test_gives_routes_streams_and_batches_to_the_node(eight: Hosted) -> None:
    assert manifest_of(eight, "pairs")["route"] == "/v1/pairs"
    assert "route" not in manifest_of(eight, "text")
    assert manifest_of(eight, "tokens")["stream"] == {"pieces": "text"}
    assert manifest_of(eight, "objects")["stream"] == {"pieces": "json"}
    assert manifest_of(eight, "double")["batch"]["maxSize"] == 4
    assert manifest_of(eight, "sums")["concurrency"] == 1
    assert manifest_of(eight, "count")["kind"] == "task"


def test_runs_hooks_of_the_service_and_of_those_it_depends_on(
    eight: Hosted, tmp_path: Path
) -> None:
    call = incoming(eight.service, Case("count", {"items": []}), tmp_path)
    counted = json.loads(eight.run(execute(eight.service, call)))
    assert counted == {"sum": 0, "known": True, "started": ["async", "sync"]}
    call = incoming(eight.service, Case("depends", {"text": "world"}), tmp_path)
    assert eight.run(execute(eight.service, call)) == b"Welt"


def test_says_where_arguments_are_wrong(eight: Hosted, tmp_path: Path) -> None:
    case = Case("model", {"person": {"name": "x", "addresses": [{"street": ""}]}})
    failure = failure_of(eight, case, tmp_path)
    assert (failure.code, failure.reason) == ("invalid_argument", "ARGUMENTS_INVALID")
    assert failure.violations == [
        ("person.addresses.0.street", "String should have at least 1 character")
    ]


def test_refuses_what_is_no_picture(eight: Hosted, tmp_path: Path) -> None:
    case = Case("image", {}, (("picture", ("a.png", b"no picture", "image/png")),))
    assert failure_of(eight, case, tmp_path).reason == "ARGUMENTS_INVALID"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "invalid_argument"),
        (401, "unauthenticated"),
        (404, "not_found"),
        (418, "invalid_argument"),
        (429, "resource_exhausted"),
        (500, "internal"),
        (503, "unavailable"),
    ],
)
def test_turns_the_status_of_an_exception_into_a_code(
    status: int, code: str, eight: Hosted, tmp_path: Path
) -> None:
    failure = failure_of(eight, Case("refuse", {"status": status}), tmp_path)
    assert (failure.code, failure.reason, str(failure)) == (code, "CALL_FAILED", "not like this")
    assert isinstance(failure.__cause__, BentoMLException)


def test_tells_the_status_headers_and_cookies_of_a_response(eight: Hosted, tmp_path: Path) -> None:
    call = incoming(eight.service, Case("answer", {"status": 409}), tmp_path)
    assert json.loads(eight.run(execute(eight.service, call))) == {
        "status": 409,
        "route": "/answer",
    }
    assert call.response is not None and call.response.status == 409
    assert ("x-model", "v2") in call.response.headers
    (cookie,) = [value for name, value in call.response.headers if name == "set-cookie"]
    assert cookie.startswith("seen=yes")


def test_tells_the_status_of_a_stream_before_its_first_piece(host: Host, tmp_path: Path) -> None:
    @bentoml.service
    class Words:
        @bentoml.api
        async def words(self, ctx: bentoml.Context) -> AsyncIterator[str]:
            ctx.response.status_code = 206
            ctx.response.headers["x-model"] = "v2"
            yield "a"

    hosted = host(Words)
    call = incoming(hosted.service, Case("words"), tmp_path)
    assert hosted.run(execute(hosted.service, call)) == b"a"
    assert call.response == ResponseHead(206, [("x-model", "v2")])


@pytest.mark.parametrize(
    ("returned", "status", "content"),
    [
        (lambda: PlainTextResponse("short and stout", 418), 418, b"short and stout"),
        (lambda: StreamingResponse(iter([b"a", b"b"]), media_type="text/csv"), None, b"ab"),
        (lambda: JSONResponse({"a": [1]}, 201, {"x-model": "v2"}), 201, b'{"a":[1]}'),
    ],
)
def test_tells_a_returned_response_as_it_is(
    returned: Callable[[], Any],
    status: int | None,
    content: bytes,
    host: Host,
    tmp_path: Path,
) -> None:
    @bentoml.service
    class Answers:
        @bentoml.api
        def answer(self) -> Any:
            return returned()

    hosted = host(Answers)
    call = incoming(hosted.service, Case("answer"), tmp_path)
    assert hosted.run(execute(hosted.service, call)) == content
    assert call.response is not None and call.response.status == status


def test_writes_numbers_that_json_does_not_have_as_python_does(host: Host, tmp_path: Path) -> None:
    @bentoml.service
    class Sensor:
        @bentoml.api
        def read(self) -> Reading:
            return Reading(value=float("inf"))

    hosted = host(Sensor)
    result = hosted.run(execute(hosted.service, incoming(hosted.service, Case("read"), tmp_path)))
    assert result == b'{"value":Infinity}'


def test_keeps_files_of_a_call_in_its_own_folder(eight: Hosted, tmp_path: Path) -> None:
    case = Case("path", {}, (("document", ("../../a b.txt", b"x", "text/plain")),))
    call = incoming(eight.service, case, tmp_path)
    assert eight.run(execute(eight.service, call)) == b"X"
    names = sorted(each.name for each in (call.folder / "uploads/0").iterdir())
    assert names == ["a b.txt", "out.txt"]


def test_shortens_long_names_of_files(eight: Hosted, tmp_path: Path) -> None:
    case = Case("path", {}, (("document", ("ä" * 300 + ".txt", b"x", "text/plain")),))
    call = incoming(eight.service, case, tmp_path, on_disk=True)
    assert eight.run(execute(eight.service, call)) == b"X"


def run_batch(
    hosted: Hosted, name: str, all_arguments: list[dict[str, Any]], folder: Path
) -> list[Any]:
    endpoint = hosted.service.endpoints[name]
    calls = [incoming(hosted.service, Case(name, each), folder) for each in all_arguments]
    if endpoint.asynchronous:
        ends = hosted.run(endpoint.execute_batch(calls, lambda *_: None))
    else:
        ends = endpoint.execute_batch(calls, lambda *_: None)
    return [each if isinstance(each, Exception) else json.loads(body(each)) for each in ends]


def test_joins_the_rows_of_calls_up_to_the_limit(eight: Hosted, tmp_path: Path) -> None:
    lists = [[1], [2, 3], [], [4, 5, 6], list(range(10))]
    ends = run_batch(eight, "double", [{"numbers": each} for each in lists], tmp_path)
    assert ends == [[2 * number for number in each] for each in lists]
    matrices = [{"matrix": [[1, 2]]}, {"matrix": [[3, 4], [5, 6]]}]
    assert run_batch(eight, "sums", matrices, tmp_path) == [[3.0], [7.0, 11.0]]


def test_fails_only_the_bad_calls_of_a_batch(eight: Hosted, tmp_path: Path) -> None:
    given = [{"numbers": [1]}, {"numbers": [13]}, {"numbers": "x"}, {"numbers": [2]}]
    first, poison, wrong, last = run_batch(eight, "double", given, tmp_path)
    assert (first, last) == ([2], [4])
    assert str(poison) == "13 is not doubled"
    assert wrong.reason == "ARGUMENTS_INVALID"


def test_fails_a_batch_whose_result_has_another_length(host: Host, tmp_path: Path) -> None:
    @bentoml.service
    class Short:
        @bentoml.api(batchable=True)
        def short(self, items: list[int]) -> list[int]:
            return items[1:]

    ends = run_batch(host(Short), "short", [{"items": [1]}, {"items": [2]}], tmp_path)
    assert [each.reason for each in ends] == ["OUTPUT_INVALID"] * 2


def test_gives_synchronous_methods_turns(host: Host, tmp_path: Path) -> None:
    running: list[int] = []
    most: list[int] = []

    @bentoml.service(threads=1)
    class Turns:
        @bentoml.api
        def first(self) -> int:
            running.append(1)
            most.append(len(running))
            running.pop()
            return 1

        @bentoml.api
        def second(self) -> Generator[str, None, None]:
            for _ in range(3):
                running.append(1)
                most.append(len(running))
                running.pop()
                yield "x"

    hosted = host(Turns)
    pieces = (
        hosted.service.endpoints["second"]
        .execute(incoming(hosted.service, Case("second"), tmp_path))
        .pieces
    )
    assert next(pieces) == "x"
    # A stream whose caller takes its time holds up nobody.
    assert hosted.run(execute(hosted.service, incoming(hosted.service, Case("first"), tmp_path)))
    assert list(pieces) == ["x", "x"]

    async def many() -> None:
        calls = [incoming(hosted.service, Case("first"), tmp_path) for _ in range(20)]
        await asyncio.gather(*(execute(hosted.service, call) for call in calls))

    hosted.run(many())
    assert max(most) == 1


def test_takes_a_turn_back_from_a_thread_that_ended_with_it() -> None:
    turns = Turns(1)

    def end_with_a_turn() -> None:
        turn = turns.taken()
        turn.__enter__()
        kept.append(turn)

    kept: list[Any] = []
    thread = threading.Thread(target=end_with_a_turn)
    thread.start()
    thread.join()
    with turns.taken():
        assert kept


def test_ends_a_generator_whose_stream_is_closed(host: Host, tmp_path: Path) -> None:
    ended: list[str] = []

    @bentoml.service
    class Endless:
        @bentoml.api
        def sync(self) -> Generator[str, None, None]:
            try:
                while True:
                    yield "x"
            finally:
                ended.append("sync")

        @bentoml.api
        async def on_loop(self):
            try:
                while True:
                    yield "x"
            finally:
                ended.append("async")

    hosted = host(Endless)
    pieces = (
        hosted.service.endpoints["sync"]
        .execute(incoming(hosted.service, Case("sync"), tmp_path))
        .pieces
    )
    next(pieces)
    pieces.close()

    async def some() -> None:
        call = incoming(hosted.service, Case("on_loop"), tmp_path)
        result = await hosted.service.endpoints["on_loop"].execute(call)
        await anext(result.pieces)
        await result.pieces.aclose()

    hosted.run(some())
    assert ended == ["sync", "async"]


def test_runs_what_is_left_for_after_the_answer(host: Host, tmp_path: Path) -> None:
    done = threading.Event()

    @bentoml.service
    class Later:
        @bentoml.api
        def now(self, ctx: bentoml.Context) -> str:
            ctx.response.background.add_task(done.set)
            return "answered"

    hosted = host(Later)
    if not hasattr(bentoml._internal.context.ServiceContext.ResponseContext(), "background"):
        pytest.skip("this version has no background tasks")
    hosted.run(execute(hosted.service, incoming(hosted.service, Case("now"), tmp_path)))
    hosted.run(asyncio.to_thread(done.wait, 10))
    assert done.is_set()


def test_a_batchable_method_behind_middlewares_makes_its_batches_itself(
    host: Host, tmp_path: Path
) -> None:
    sizes: list[int] = []
    firsts: list[int] = []
    numbers = count()

    class Numbered:
        """Of ASGI: leaves its number to each call."""

        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            scope["state"]["number"] = next(numbers)
            await self.app(scope, receive, send)

    @bentoml.service
    class Middled:
        @bentoml.api(batchable=True, max_batch_size=4)
        async def lengths(self, texts: list[str], ctx: bentoml.Context) -> list[int]:
            sizes.append(len(texts))
            firsts.append(ctx.request.state.number)
            return [len(text) for text in texts]

    Middled.add_asgi_middleware(Numbered)
    hosted = host(Middled)
    assert "batch" not in manifest_of(hosted, "lengths")

    async def together() -> list[bytes]:
        calls = [
            incoming(hosted.service, Case("lengths", json={"texts": ["a" * n]}), tmp_path)
            for n in range(6)
        ]
        return await asyncio.gather(*(execute(hosted.service, each) for each in calls))

    assert hosted.run(together()) == [f"[{n}]".encode() for n in range(6)]
    assert sum(sizes) == 6
    assert max(sizes) > 1
    assert firsts == [sum(sizes[:batch]) for batch in range(len(sizes))]


@pytest.mark.skipif(bentoml.__version__.startswith("1.3."), reason="it has no commands yet")
def test_refuses_a_command_behind_an_application_where_the_proxy_always_starts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        """An ASGI application."""

    @bentoml.service(cmd=["serve"])
    class Commanded:
        """Answers by its command."""

    bentoml.mount_asgi_app(page, path="/below")(Commanded)
    assert [each.manifest["path"] for each in adapt(Commanded).mounts] == ["/below", "/"]
    bentoml.mount_asgi_app(page, path="/")(Commanded)
    monkeypatch.setattr("tessera.bentoml.internals._proxy_leaves_start", lambda: False)
    with pytest.raises(ServiceError, match="Commanded: it is a command"):
        adapt(Commanded)


def test_mounts_applications_by_their_paths() -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        """An ASGI application."""

    @bentoml.service(traffic={"timeout": 5, "max_concurrency": 30}, workers=2)
    class Mounted:
        @bentoml.api
        def call(self) -> str:
            return ""

    Mounted.mount_asgi_app(page, path="/page/")
    Mounted.mount_asgi_app(page, path="/other")
    assert adapt(Mounted).manifest["mounts"] == [
        {"path": "/page", "timeoutMs": 5_000, "concurrency": 15},
        {"path": "/other", "timeoutMs": 5_000, "concurrency": 15},
    ]
    Mounted.mount_asgi_app(page, path="/{a}")
    with pytest.raises(ServiceError, match=re.escape("cannot be mounted at '/{a}'")):
        adapt(Mounted)


@pytest.mark.skipif(bentoml.__version__.startswith("1.3."), reason="it has no commands yet")
def test_a_command_answers_everything_in_one_worker() -> None:
    @bentoml.service(workers=4)
    class Commanded:
        def __command__(self) -> list[str]:
            return ["sleep", "1"]

    manifest = adapt(Commanded).manifest
    assert [each["path"] for each in manifest["mounts"]] == ["/"]
    assert (manifest["workers"], manifest["processes"]) == (1, 64)

    @bentoml.service
    class Whole:
        part = bentoml.depends(Commanded)

        @bentoml.api
        def call(self) -> str:
            return ""

    whole = adapt(Whole).manifest
    assert "mounts" not in whole
    assert (whole["workers"], whole["processes"]) == (1, 64)


def test_keeps_the_paths_of_methods() -> None:
    @bentoml.service
    class Routed:
        @bentoml.api(route="/api/v1/first")
        def first(self) -> str:
            return ""

        @bentoml.api(route="/v1/model:predict")
        def second(self) -> str:
            return ""

        @bentoml.api(route="/v1/third/")
        def third(self) -> str:
            return ""

        @bentoml.task(route="/")
        def fourth(self) -> str:
            return ""

        @bentoml.api(route="/größe")
        def metrics(self) -> str:
            return ""

        @bentoml.api(route="/first")
        def fifth(self) -> str:
            return ""

        @bentoml.api
        def plain(self) -> str:
            return ""

    endpoints = adapt(Routed).endpoints
    assert {name: each.manifest.get("route") for name, each in endpoints.items()} == {
        "first": "/api/v1/first",
        "second": "/v1/model:predict",
        "third": "/v1/third",
        "fourth": "/",
        "metrics": "/größe",
        "fifth": "/first",
        "plain": None,
    }


@pytest.mark.parametrize(
    ("route", "why"),
    [
        ("/items/{item}", "make it an argument"),
        ("/a?b", "it must begin with one slash"),
        ("/a\\b", "it must begin with one slash"),
        ("/a\u2028b", "it must begin with one slash"),
        (f"/{'a' * 255}", "at most 255 characters"),
        ("/metrics", "the node answers this path itself"),
        ("/schema.json", "the node answers this path itself"),
        ("/api/v1/tasks/mine", "the node answers this path itself"),
        ("/api/v1/tasks:mine", "the node answers this path itself"),
        ("/tessera.v1.TaskService/GetTask", "the node answers this path itself"),
        ("/plain", "endpoint plain has it"),
        ("/queued/submit", "endpoint routed has /queued/submit, which a task needs"),
    ],
)
def test_refuses_paths_that_would_not_be_served(route: str, why: str) -> None:
    @bentoml.service
    class Routed:
        @bentoml.api
        def plain(self) -> str:
            return ""

        @bentoml.task
        def queued(self) -> str:
            return ""

        @bentoml.api(route=route)
        def routed(self) -> str:
            return ""

    with pytest.raises(ServiceError, match=re.escape(why)) as caught:
        adapt(Routed)
    assert len(str(caught.value).splitlines()) == 1


def test_puts_the_prefix_of_a_service_before_its_paths() -> None:
    class Prefixed:
        @bentoml.api
        def call(self) -> str:
            return ""

    try:
        service = bentoml.service(path_prefix="/v1")(Prefixed)
    except TypeError:
        pytest.skip("this version has no prefixes")
    if not hasattr(service, "path_prefix"):
        pytest.skip("this version has no prefixes")
    assert adapt(service).endpoints["call"].manifest["route"] == "/v1/call"


def test_runs_hooks_in_their_order(host: Host, tmp_path: Path) -> None:
    seen: list[str] = []

    @bentoml.service
    class Hooked:
        @bentoml.on_deployment
        def prepare() -> None:  # type: ignore[misc]
            seen.append("deployment")

        def __init__(self) -> None:
            seen.append("constructed")

        @bentoml.on_startup
        def start(self) -> None:
            seen.append("startup")

        @bentoml.on_shutdown
        async def stop(self) -> None:
            seen.append("shutdown")

    adapted = adapt(Hooked)
    asyncio.run(adapted.setup())
    asyncio.run(adapted.teardown())
    assert seen == ["deployment", "constructed", "startup", "shutdown"]


def test_says_why_a_name_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    # As it is when a file is imported.
    monkeypatch.setattr(bentoml.server_context, "worker_index", None)

    @bentoml.service
    class Importing:
        def __init__(self) -> None:
            with bentoml.importing():
                import a_package_that_nobody_has
            self.model = a_package_that_nobody_has.load()

    with pytest.raises(ServiceError, match=r"Importing: .*is a package missing"):
        asyncio.run(adapt(Importing).setup())


def test_refuses_names_that_the_node_answers_itself() -> None:
    @bentoml.service
    class Named:
        @bentoml.api
        def metrics(self) -> str:
            return ""

    with pytest.raises(ServiceError, match="endpoint metrics: the path /metrics: the node answers"):
        adapt(Named)


def test_names_endpoints_in_ascii_at_the_paths_of_their_methods() -> None:
    @bentoml.service
    class Named:
        @bentoml.api
        def _score(self) -> str:
            return "score"

        @bentoml.api
        def größe(self) -> str:
            return "size"

        @bentoml.task
        def añadir(self) -> str:
            return "task"

    adapted = adapt(Named)
    assert {each["name"]: each["route"] for each in adapted.manifest["endpoints"]} == {
        "x_score": "/_score",
        "gruf6udfe": "/größe",
        "auf1adir": "/añadir",
    }
    assert set(adapted.endpoints) == {"x_score", "gruf6udfe", "auf1adir"}

    @bentoml.service
    class Shared:
        @bentoml.api
        def _score(self) -> str:
            return ""

        @bentoml.api
        def x_score(self) -> str:
            return ""

    with pytest.raises(ServiceError, match="endpoint x_score: two methods have this name"):
        adapt(Shared)


class Tree(BaseModel):
    children: list[Tree] = []


def test_hosts_models_that_contain_themselves(host: Host, tmp_path: Path) -> None:
    @bentoml.service
    class Forest:
        @bentoml.api
        def grow(self, tree: Tree) -> Tree:
            return Tree(children=[tree])

    hosted = host(Forest)
    call = incoming(hosted.service, Case("grow", {"tree": {}}), tmp_path)
    assert hosted.run(execute(hosted.service, call)) == b'{"children":[{"children":[]}]}'


def test_says_which_type_is_unknown() -> None:
    class Hidden(BaseModel):
        value: float

    @bentoml.service
    class Unknown:
        @bentoml.api
        def read(self) -> Hidden:
            return Hidden(value=1)

    with pytest.raises(ServiceError, match=r"Unknown\.read: its types: .*Hidden"):
        adapt(Unknown)


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("service = bentoml.legacy.Service('old')", "it is a legacy bentoml.Service with runners"),
        (
            """
class Echo(bentoml.legacy.Runnable):
    SUPPORTED_RESOURCES = ("cpu",)
    SUPPORTS_CPU_MULTI_THREADING = True

    @bentoml.legacy.Runnable.method(batchable=False)
    def run(self, text: str) -> str:
        return text

service = bentoml.runner_service(bentoml.legacy.Runner(Echo, name="echo"))
""",
            "it is a legacy runner",
        ),
    ],
)
def test_refuses_services_of_before_1_2(source: str, why: str, tmp_path: Path) -> None:
    pytest.importorskip("bentoml.legacy")
    file = tmp_path / "old.py"
    file.write_text(f"import bentoml, bentoml.legacy\n{source}\n")
    # In a process of its own: BentoML's old configuration and the new one exclude each other.
    program = "import sys; from tessera.sdk.loading import load_service; load_service(sys.argv[1])"
    path = os.pathsep.join([*sys.path, str(Path(__file__).parents[2] / "src")])
    done = subprocess.run(
        [sys.executable, "-c", program, str(file)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert why in done.stderr.splitlines()[-1]


def test_is_ready_when_all_services_of_the_process_say_so(host: Host) -> None:
    said = {"inner": False, "outer": True}

    @bentoml.service
    class Inner:
        async def __is_ready__(self) -> bool:
            return said["inner"]

    @bentoml.service
    class Outer:
        inner = bentoml.depends(Inner)

        def __is_ready__(self) -> int:
            return int(said["outer"])

    hosted = host(Outer)
    ready = hosted.service.ready
    assert ready is not None and ready.__name__ == "__is_ready__"
    assert hosted.run(ready()) is False
    said["inner"] = True
    assert hosted.run(ready()) is True


def test_is_ready_at_once_without_a_say(eight: Hosted) -> None:
    assert eight.service.ready is None


def test_says_which_variable_is_missing() -> None:
    @bentoml.service(envs=[{"name": "NOBODY_SETS_THIS"}])
    class Needy:
        pass

    with pytest.raises(ServiceError, match="Needy: the variable NOBODY_SETS_THIS is not set"):
        adapt(Needy)


def test_takes_what_pydantic_takes_and_javascript_does_not(host: Host, tmp_path: Path) -> None:
    @bentoml.service
    class Loose:
        @bentoml.api
        def date(
            self,
            day: date,
            code: str = Field("A", pattern=r"(?i)\Aa\z"),
            low: float = float("nan"),
        ) -> str:
            return day.isoformat()

    manifest = manifest_of(host(Loose), "date")
    assert manifest["input"]["properties"] == {
        "day": {"title": "Day", "type": "string"},
        "code": {"title": "Code", "type": "string", "default": "A"},
        "low": {"title": "Low", "type": "number"},
    }
