"""Services: what their decorators make of type hints, and what a call of them does."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from tessera import (
    BadInput,
    Batch,
    BatchContext,
    Context,
    File,
    FileType,
    api,
    service,
    task,
)
from tessera.sdk.executable import CallError, ServiceError
from tessera.sdk.hosted import HostedClass
from tessera.sdk.loading import load_service
from tessera.sdk.services import definition_of
from tessera.testing import Told, call, call_sync

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Page(BaseModel):
    text: str
    score: float = 1.0


@dataclass
class Box:
    x: int
    y: int


class Word(TypedDict):
    text: str
    language: str


@service
class PageReader:
    """Reads pages."""

    def setup(self) -> None:
        self.greeting = "hello"

    @api(timeout="10s", concurrency=4)
    def greet(self, name: Annotated[str, Field(min_length=1)], times: int = 2) -> str:
        """Greets."""
        return " ".join([f"{self.greeting} {name}"] * times)

    @api
    async def later(self, name: str) -> str:
        await asyncio.sleep(0)
        return name

    @api
    def score(self, page: Page, value: float) -> Page:
        return Page(text=page.text, score=value)

    @api
    def boxes(self, boxes: list[Box]) -> list[Box]:
        return boxes

    @api
    def anything(self, value: Any = None) -> Any:
        return value

    @api
    def wrong(self) -> int:
        return "text"  # type: ignore[return-value]

    @api
    def choose(self, kind: Literal["a", "b"] = "a", size: int = Field(default=3, ge=1)) -> str:
        return kind * size

    @api
    def refuse(self) -> None:
        raise BadInput("not like this")

    @task(retries=3, backoff="5s", retention="7d", queue_limit=10, priority=5, abort_grace="1m")
    def read(self, pages: list[File], ctx: Context) -> str:
        for index, page in enumerate(pages):
            ctx.progress(index / len(pages), page.name or "")
            ctx.log.info("read", page=index)
        return "".join(page.text() for page in pages)

    @api
    def size(
        self,
        scan: Annotated[File, FileType("image/*", max_bytes=100)],
        data: bytes = b"",
        path: Path | None = None,
    ) -> list[int]:
        return [scan.size, len(data), path.stat().st_size if path else 0]

    @api
    def upper(self, file: File) -> Annotated[File, FileType("text/plain")]:
        return File.from_bytes(file.read().upper(), name="upper.txt")

    @api
    def words(self, text: str) -> Iterator[str]:
        yield from text.split()

    @api
    async def squares(self, count: int) -> AsyncIterator[Page]:
        for number in range(count):
            yield Page(text=str(number), score=number**2)

    @api
    def parts(self, count: int) -> Iterator[bytes]:
        for number in range(count):
            yield bytes([number])

    @api(batch=Batch(max_size=8, max_wait="20ms", key="language"))
    def lengths(self, words: list[Word], ctx: BatchContext) -> list[int | Exception]:
        assert len(ctx) == len(words)
        if any(word["text"] == "poison" for word in words):
            raise RuntimeError("poisoned")
        return [ValueError("empty") if not word["text"] else len(word["text"]) for word in words]


HOSTED = HostedClass(definition_of(PageReader))  # type: ignore[arg-type]
MANIFESTS = {each["name"]: each for each in HOSTED.manifest["endpoints"]}


def test_a_service_has_the_name_of_its_class_and_the_text_of_its_docstring() -> None:
    assert HOSTED.manifest["name"] == "page-reader"
    assert HOSTED.manifest["description"] == "Reads pages."
    assert MANIFESTS["greet"]["description"] == "Greets."


def test_options_become_those_of_the_manifest() -> None:
    greet = MANIFESTS["greet"]
    assert [greet["kind"], greet["timeoutMs"], greet["concurrency"]] == ["api", 10_000, 4]
    read = MANIFESTS["read"]
    assert read["retries"] == {"max": 3, "backoffMs": 5_000}
    assert [read["retentionMs"], read["queueLimit"], read["priority"]] == [604_800_000, 10, 5]
    assert read["abortGraceMs"] == 60_000
    assert "abortGraceMs" not in greet


def test_limits_by_key_are_in_the_manifest_where_an_endpoint_has_some() -> None:
    @service
    class Shared:
        @task(concurrency_per_key=2, rate_per_key="10/min", fair="seconds")
        def go(self) -> None: ...

        @task(fair=True)
        def wait(self) -> None: ...

        @task
        def stay(self) -> None: ...

    manifest = HostedClass(definition_of(Shared)).manifest  # type: ignore[arg-type]
    limits = {each["name"]: each.get("byKey") for each in manifest["endpoints"]}
    rate = {"count": 10, "periodMs": 60_000}
    assert limits == {
        "go": {"concurrency": 2, "rate": rate, "fair": "seconds"},
        "wait": {},
        "stay": None,
    }


def test_placement_is_in_the_manifest_where_something_is_said() -> None:
    @service(
        name="s",
        requires={"gpu": "*"},
        place="any",
        ready_timeout="15m",
        processes=8,
        gpus=2,
        gpu_memory="20GiB",
    )
    class Placed:
        @api(place="local", requires={})
        def ask(self) -> str:
            return ""

        @task(requires={"gpu": "h200"}, place="remote")
        def learn(self) -> str:
            return ""

        @task
        def plain(self) -> str:
            return ""

    manifest = HostedClass(definition_of(Placed)).manifest  # type: ignore[arg-type]
    assert (manifest["requires"], manifest["place"]) == ({"gpu": "*"}, "any")
    assert (manifest["readyTimeoutMs"], manifest["processes"]) == (900_000, 8)
    assert (manifest["gpus"], manifest["gpuMemoryMib"]) == (2, 20_480)
    ask, learn, plain = manifest["endpoints"]
    assert (ask["place"], "requires" in ask) == ("local", False)
    assert (learn["place"], learn["requires"]) == ("remote", {"gpu": "h200"})
    assert not {"place", "requires"} & {*plain, *HOSTED.manifest}


@pytest.mark.parametrize("wrong", [-1, 1_001, 1.5, True, "8"])
def test_processes_are_a_whole_number_up_to_a_thousand(wrong: Any) -> None:
    with pytest.raises(ServiceError, match='service "s": processes must be a whole number'):
        service(name="s", processes=wrong)(type("S", (), {"go": api(lambda self: None)}))


def test_system_packages_are_in_the_manifest() -> None:
    @service(name="s", packages=["ffmpeg", "g++", "libgl1=1.6.0-1"])
    class Named:
        @api
        def go(self) -> None: ...

    manifest = HostedClass(definition_of(Named)).manifest  # type: ignore[arg-type]
    assert manifest["packages"] == ["ffmpeg", "g++", "libgl1=1.6.0-1"]


@pytest.mark.parametrize(
    "image",
    ["debian", "acme/reader:1.2", "localhost/reader", "r.example.com:5000/a/b@sha256:" + "0" * 64],
)
def test_the_image_is_in_the_manifest(image: str) -> None:
    @service(image=image)
    class Named:
        @api
        def go(self) -> None: ...

    manifest = HostedClass(definition_of(Named)).manifest  # type: ignore[arg-type]
    assert manifest["image"] == image


@pytest.mark.parametrize("wrong", ["", "--help", "oci:/etc", "docker://debian", "Debian", "a b", 1])
def test_the_image_is_a_name_as_docker_has_it(wrong: Any) -> None:
    with pytest.raises(ServiceError, match=r'service "s": image is'):
        service(name="s", image=wrong)(type("S", (), {}))


@pytest.mark.parametrize("wrong", ["ffmpeg", ["-o"], ["./a.deb"], ["a-"], ["tool"] * 65, [1]])
def test_system_packages_are_names_of_debian(wrong: Any) -> None:
    with pytest.raises(ServiceError, match=r'service "s": packages (must be|has)'):
        service(name="s", packages=wrong)(type("S", (), {"go": api(lambda self: None)}))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"gpus": 17}, "gpus must be a whole number from 0 to 16"),
        ({"gpus": True}, "gpus must be a whole number from 0 to 16"),
        ({"gpus": 1.5}, "or a part of one GPU in hundredths, such as 0.5, not 1.5"),
        ({"gpus": 0.125}, "or a part of one GPU in hundredths, such as 0.5, not 0.125"),
        ({"gpus": float("nan")}, "gpus must be a whole number from 0 to 16"),
        ({"gpus": "0.5"}, "gpus must be a whole number from 0 to 16"),
        ({"gpu_memory": "20"}, "gpu_memory must be a size from 1MiB to 1024GiB"),
        ({"gpu_memory": 20}, "gpu_memory must be a size from 1MiB to 1024GiB"),
    ],
)
def test_gpus_are_a_few_whole_ones_or_a_share_of_their_memory(
    wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(ServiceError, match=said):
        service(name="s", **wrong)(type("S", (), {"go": api(lambda self: None)}))


@pytest.mark.parametrize(("gpus", "said"), [(0.5, 0.5), (0.07, 0.07), (2.0, 2), (0, 0)])
def test_a_part_of_a_gpu_is_in_hundredths(gpus: float, said: float) -> None:
    @service(name="s", gpus=gpus)
    class Part:
        @api
        def ask(self) -> str:
            return ""

    manifest = HostedClass(definition_of(Part)).manifest  # type: ignore[arg-type]
    assert repr(manifest["gpus"]) == repr(said)


@pytest.mark.parametrize("wrong", ["25h", 0.5, True, "soon"])
def test_a_time_to_load_is_from_a_second_to_a_day(wrong: Any) -> None:
    with pytest.raises(ServiceError, match='service "s": ready_timeout must be seconds'):
        service(name="s", ready_timeout=wrong)(type("S", (), {"go": api(lambda self: None)}))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"place": "there"}, 'place must be "local", "remote" or "any"'),
        ({"requires": ["gpu"]}, "requires must have labels with their values"),
        ({"requires": {"gpu": ""}}, "requires: label 'gpu' must have a value"),
        ({"requires": {"gpu": 1}}, "requires: label 'gpu' must have a value"),
        ({"requires": {"no spaces": "*"}}, "requires: label 'no spaces' must have a name"),
        ({"requires": {f"l{each}": "*" for each in range(33)}}, "at most 32 labels"),
    ],
)
def test_a_wrong_placement_is_told_where_it_is(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ServiceError, match=said) as refused:
        service(name="s", **wrong)(type("S", (), {"go": api(lambda self: None)}))
    assert str(refused.value).startswith('service "s": ')
    with pytest.raises(ServiceError, match=said) as refused:
        cls = service(name="s")(type("S", (), {"go": api(name="go", **wrong)(lambda self: None)}))
        HostedClass(definition_of(cls))  # type: ignore[arg-type]
    assert str(refused.value).startswith('service "s", endpoint "go": ')


def test_type_hints_become_schemas() -> None:
    assert MANIFESTS["greet"]["input"] == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1},
            "times": {"type": "integer", "default": 2},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert MANIFESTS["greet"]["output"] == {"type": "string"}
    assert MANIFESTS["anything"]["output"] == {}
    size = MANIFESTS["choose"]["input"]["properties"]["size"]
    assert size == {"type": "integer", "minimum": 1, "default": 3}


def test_files_are_arguments_and_results_by_their_annotation() -> None:
    size = MANIFESTS["size"]
    assert size["files"] == {
        "scan": {"contentType": "image/*", "maxBytes": 100, "required": True, "array": False},
        "data": {"required": False, "array": False},
        "path": {"required": False, "array": False},
    }
    assert size["input"]["properties"]["scan"] == {
        "type": "string",
        "format": "binary",
        "contentMediaType": "image/*",
    }
    assert size["input"]["required"] == ["scan"]
    assert MANIFESTS["read"]["files"]["pages"] == {"required": True, "array": True}
    assert MANIFESTS["upper"]["outputFile"] == {"contentType": "text/plain"}


def test_generators_stream_and_their_pieces_have_a_form() -> None:
    assert MANIFESTS["words"]["stream"] == {"pieces": "text"}
    assert MANIFESTS["squares"]["stream"] == {"pieces": "json"}
    assert MANIFESTS["squares"]["output"]["properties"]["text"] == {"type": "string"}
    assert MANIFESTS["parts"]["stream"] == {"pieces": "bytes"}


def test_a_batch_has_the_arguments_and_the_result_of_one_call() -> None:
    lengths = MANIFESTS["lengths"]
    assert list(lengths["input"]["properties"]) == ["text", "language"]
    assert lengths["output"] == {"type": "integer"}
    assert lengths["batch"] == {
        "maxSize": 8,
        "maxWaitMs": 20,
        "maxBytes": 64 * 1024**2,
        "onError": "split",
        "keyPointer": "/language",
    }


async def test_calls_run_through_validation_method_and_serialisation() -> None:
    assert await call(PageReader.greet, name="Al") == "hello Al hello Al"
    assert await call(PageReader.later, name="Al") == "Al"
    assert await call(PageReader.boxes, boxes=[{"x": 1, "y": "2"}]) == [{"x": 1, "y": 2}]
    assert await call(PageReader.choose) == "aaa"


def test_calls_need_no_event_loop() -> None:
    assert call_sync(PageReader.greet, name="Al", times=1) == "hello Al"


async def test_wrong_arguments_are_told_with_their_paths() -> None:
    with pytest.raises(CallError, match="arguments of greet are invalid") as refused:
        await call(PageReader.greet, name="", colour="red")
    assert refused.value.reason == "ARGUMENTS_INVALID"
    assert dict(refused.value.violations) == {
        "name": "String should have at least 1 character",
        "colour": "no such argument (there are: name, times)",
    }
    with pytest.raises(CallError) as nested:
        await call(PageReader.boxes, boxes=[{"x": 1, "y": 2}, {"x": "?"}])
    assert [path for path, _ in nested.value.violations] == ["boxes.1.x", "boxes.1.y"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
async def test_numbers_that_json_does_not_have_are_no_result(value: float) -> None:
    hosted = HostedClass(definition_of(Numbers))  # type: ignore[arg-type]
    await hosted.setup()
    for method, where in ((Numbers.plain, "it"), (Numbers.nested, "pages.0.score in it")):
        Numbers.value = value
        with pytest.raises(CallError, match=f"{where} is not a finite number") as refused:
            await call(method)
        assert refused.value.reason == "OUTPUT_INVALID"


@service
class Numbers:
    value = 0.0

    @api
    def plain(self) -> Any:
        return self.value

    @api
    def nested(self) -> dict[str, list[Page]]:
        return {"pages": [Page(text="NaN null", score=self.value)]}


async def test_a_result_that_the_type_hint_does_not_allow_is_none() -> None:
    with pytest.raises(CallError, match="wrong returned what its type hint does not allow"):
        await call(PageReader.wrong)
    with pytest.raises(CallError, match="cannot be sent: Unable to serialize unknown type"):
        await call(Unserialisable.lock)


@service
class Unserialisable:
    @api
    def lock(self) -> Any:
        return object()


async def test_errors_have_the_code_that_the_function_chose() -> None:
    with pytest.raises(BadInput) as refused:
        await call(PageReader.refuse)
    assert refused.value.code == "invalid_argument"


async def test_files_come_and_go(tmp_path: Path) -> None:
    path = tmp_path / "page.txt"
    path.write_text("two")
    told = Told()
    assert await call(PageReader.read, pages=[b"one ", path], told=told) == "one two"
    assert told.progress == [(0.0, ""), (0.5, "page.txt")]
    assert told.lines == [("info", "read", {"page": 0}), ("info", "read", {"page": 1})]
    assert await call(PageReader.size, scan=b"12", data=b"345", path=path) == [2, 3, 3]
    upper = await call(PageReader.upper, file=b"text")
    assert (upper.read(), upper.name, upper.content_type) == (b"TEXT", "upper.txt", "text/plain")


async def test_pieces_come_in_their_form() -> None:
    assert await call(PageReader.words, text="a b") == ["a", "b"]
    assert await call(PageReader.squares, count=2) == [
        {"text": "0", "score": 0.0},
        {"text": "1", "score": 1.0},
    ]
    assert await call(PageReader.parts, count=2) == [b"\0", b"\1"]


async def test_a_batch_of_one_is_a_call() -> None:
    assert await call(PageReader.lengths, text="word", language="en") == 4
    with pytest.raises(ValueError, match="empty"):
        await call(PageReader.lengths, text="", language="en")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: api(timeout="soon"), 'timeout must be seconds or a duration such as "30s"'),
        (lambda: api(concurrency=0), "concurrency must be a whole number from 1 to 1,000, not 0"),
        (lambda: api(abort_grace="2d"), "abort_grace must be seconds or a duration"),
        (lambda: api(idempotent="yes"), "idempotent must be True or False"),
        (lambda: task(fair="hours"), 'fair must be True, False or "seconds"'),
        (lambda: api(name="submit"), "this name is reserved for the server"),
        (lambda: api(name="two words"), "must begin with a letter"),
        (lambda: api(batch=Batch()), "with batch each parameter is a list"),
    ],
)
def test_wrong_options_are_told_with_their_place(make: Any, said: str) -> None:
    def method(self: object, text: str) -> str:
        return text

    with pytest.raises(ServiceError, match=said) as refused:
        cls = service(name="s")(type("S", (), {"method": make()(method)}))
        HostedClass(definition_of(cls))  # type: ignore[arg-type]
    assert str(refused.value).startswith('service "s", endpoint ')


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import cv2.aruco", r"the package cv2 is not .*: run .* install opencv-python-headless"),
        ("import pydantic.nowhere", r"the package pydantic has no module pydantic\.nowhere"),
        ("from tessera import api\n\ndef broken(:", r"said\.py:3:12: "),
        ("x = 1", r"has no service; put @service on a class"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_told_with_its_place(
    source: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    path = tmp_path / "said.py"
    path.write_text(source)
    with pytest.raises(ServiceError, match=said) as refused:
        load_service(str(path))
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize("module", ["nowhere", "nowhere.pages"])
def test_a_module_that_is_not_there_is_told_with_the_folder(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", [*sys.path])
    with pytest.raises(ServiceError, match=rf"there is no module {module} in /"):
        load_service(module)


class NoSchema:
    pass


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        (NoSchema, "parameter value: the type NoSchema has no schema"),
        (dict[str, File], "parameter value has a file inside"),
    ],
)
def test_types_without_a_schema_are_told_with_their_parameter(hint: Any, said: str) -> None:
    def method(self: object, value: Any) -> None: ...

    method.__annotations__["value"] = hint
    cls = service(name="s")(type("S", (), {"method": api(method)}))
    with pytest.raises(ServiceError, match=said):
        HostedClass(definition_of(cls))  # type: ignore[arg-type]
