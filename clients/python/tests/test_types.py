"""Pictures, arrays and tables as arguments and results."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BeforeValidator

numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
Image = pytest.importorskip("PIL.Image")

from numpy.typing import NDArray  # noqa: E402

from tessera import File, FileType, api, service  # noqa: E402
from tessera.sdk.executable import (  # noqa: E402
    CallError,
    IncomingCall,
    IncomingFile,
    ServiceError,
)
from tessera.sdk.hosted import HostedClass  # noqa: E402
from tessera.sdk.services import definition_of  # noqa: E402
from tessera.testing import call_sync  # noqa: E402

NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.file"
PARQUET = "application/vnd.apache.parquet"


@service
class Types:
    @api
    def turn(self, picture: Image.Image) -> Image.Image:
        return picture.rotate(90, expand=True)

    @api
    def shrink(
        self, picture: Annotated[Image.Image, FileType("image/png")]
    ) -> Annotated[Image.Image, FileType("image/jpeg")]:
        return picture.convert("RGB").resize((1, 1))

    @api
    def double(self, array: numpy.ndarray) -> numpy.ndarray:
        return array * 2

    @api
    def negate(self, array: numpy.ndarray) -> numpy.ndarray:
        array *= -1
        return array

    @api
    def first(self, array: Annotated[numpy.ndarray, BeforeValidator(lambda sent: sent[:1])]) -> int:
        return len(array)

    @api
    def whole(self, array: NDArray[numpy.int64]) -> str:
        return str(array.dtype)

    @api
    def single(self, array: NDArray[numpy.float32]) -> str:
        return str(array.dtype)

    @api
    def halve(
        self, array: Annotated[numpy.ndarray, FileType(NPY)]
    ) -> Annotated[numpy.ndarray, FileType(NPY)]:
        return array / 2

    @api
    def total(self, table: pandas.DataFrame) -> pandas.DataFrame:
        return table.sum().to_frame().T

    @api
    def rows(
        self, table: Annotated[pandas.DataFrame, FileType("text/csv")]
    ) -> Annotated[pandas.DataFrame, FileType("text/csv")]:
        return table.head(1)

    @api
    def arrow(
        self, table: Annotated[pandas.DataFrame, FileType(ARROW)]
    ) -> Annotated[pandas.DataFrame, FileType(ARROW)]:
        return table * 2

    @api
    def parquet(
        self, table: Annotated[pandas.DataFrame, FileType(PARQUET)]
    ) -> Annotated[pandas.DataFrame, FileType(PARQUET)]:
        return table * 2


def manifest(name: str) -> dict[str, Any]:
    hosted = HostedClass(definition_of(Types))  # type: ignore[arg-type]
    return dict(hosted.endpoints[name].manifest)


def png(width: int, height: int) -> File:
    buffer = BytesIO()
    Image.new("RGB", (width, height), "red").save(buffer, format="PNG")
    return File.from_bytes(buffer.getvalue(), name="p.png")


def npy(array: Any) -> File:
    buffer = BytesIO()
    numpy.save(buffer, array)
    return File.from_bytes(buffer.getvalue(), content_type=NPY)


def test_pictures_are_files() -> None:
    assert manifest("turn")["files"]["picture"]["contentType"] == "image/*"
    turned = call_sync(Types.turn, picture=png(2, 3))
    assert turned.content_type == "image/png"
    assert Image.open(turned.open()).size == (3, 2)
    small = call_sync(Types.shrink, picture=png(2, 3))
    assert (small.content_type, Image.open(small.open()).size) == ("image/jpeg", (1, 1))


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(CallError, match="picture: Value error, must be a picture"):
        call_sync(Types.turn, picture=b"no picture")


def test_arrays_are_nested_lists() -> None:
    assert manifest("double")["input"]["properties"]["array"] == {"type": "array", "items": {}}
    assert call_sync(Types.double, array=[[1, 2], [3, 4]]) == [[2, 4], [6, 8]]
    assert call_sync(Types.single, array=[1, 2]) == "float32"
    with pytest.raises(CallError, match="array: Value error"):
        call_sync(Types.double, array=[[1], [2, 3]])


DOUBLES = "application/vnd.tessera.doubles;shape="


def answer(name: str, array: Any, *files: tuple[str, bytes]) -> Any:
    """What an endpoint answers to a call as the node sends it."""
    hosted = HostedClass(definition_of(Types))  # type: ignore[arg-type]
    endpoint: Any = hosted.endpoints[name]
    endpoint.bind(Types())
    call = IncomingCall(
        endpoint=name,
        arguments=json.dumps({"array": array}),
        files=[IncomingFile(kind, None, len(data), data=data) for kind, data in files],
        folder=Path("unused"),
        task_id="t",
        attempt=1,
        deadline_seconds=0,
        outlet=None,  # type: ignore[arg-type]
    )
    return json.loads(endpoint.execute(call).json)


def test_large_arrays_come_as_doubles() -> None:
    assert manifest("double")["arrays"] == ["array"]
    data = numpy.array([0.5, 1.5, 2.5, 1e-300]).tobytes()
    assert answer("double", {"$array": 0}, (DOUBLES + "4", data)) == [1, 3, 5, 2e-300]
    rows = answer("negate", {"$array": 1}, (NPY, b""), (DOUBLES + "2,2", data))
    assert rows == [[-0.5, -1.5], [-2.5, -1e-300]]
    assert answer("single", {"$array": 0}, (DOUBLES + "4", data)) == "float32"


def test_arrays_that_doubles_do_not_make_come_as_json() -> None:
    assert "arrays" not in manifest("whole")
    assert "arrays" not in manifest("first")
    assert "arrays" not in manifest("halve")


@pytest.mark.parametrize(
    ("sent", "kind", "data"),
    [
        ({"$array": 1}, DOUBLES + "1", bytes(8)),
        ({"$array": -1}, DOUBLES + "1", bytes(8)),
        ({"$array": True}, DOUBLES + "1", bytes(8)),
        ({"$array": 0, "more": 1}, DOUBLES + "1", bytes(8)),
        ({"$array": 0}, NPY, bytes(8)),
        ({"$array": 0}, DOUBLES + "x", bytes(8)),
        ({"$array": 0}, DOUBLES + "2", bytes(8)),
        ({"$array": 0}, DOUBLES + "1", bytes(7)),
    ],
)
def test_what_is_no_array_is_refused(sent: Any, kind: str, data: bytes) -> None:
    with pytest.raises(CallError, match="array: Value error"):
        answer("double", sent, (kind, data))


def test_numbers_that_json_does_not_have_are_no_result() -> None:
    with pytest.raises(CallError, match="1 in it is not a finite number"):
        call_sync(Types.double, array=[1.0, 1e308])


def test_arrays_are_files_where_their_type_says_so() -> None:
    assert manifest("halve")["outputFile"] == {"contentType": NPY}
    halved = call_sync(Types.halve, array=npy(numpy.array([2.0, 4.0])))
    assert numpy.load(halved.open()).tolist() == [1.0, 2.0]
    with pytest.raises(CallError, match=r"must be an \.npy file"):
        call_sync(Types.halve, array=npy(numpy.array([{}], dtype=object)))


def test_tables_are_rows_or_columns() -> None:
    columns = {"a": [1, 2], "b": [3, 4]}
    rows = [{"a": 1, "b": 3}, {"a": 2, "b": 4}]
    assert call_sync(Types.total, table=columns) == [{"a": 3, "b": 7}]
    assert call_sync(Types.total, table=rows) == [{"a": 3, "b": 7}]


def test_tables_are_files_where_their_type_says_so() -> None:
    table = File.from_bytes(b"a,b\n1,2\n3,4\n", name="t.csv")
    first = call_sync(Types.rows, table=table)
    assert (first.read(), first.content_type) == (b"a,b\n1,2\n", "text/csv")


@pytest.mark.parametrize(
    ("method", "content_type", "write", "read"),
    [
        (Types.arrow, ARROW, "to_feather", pandas.read_feather),
        (Types.parquet, PARQUET, "to_parquet", pandas.read_parquet),
    ],
)
def test_tables_are_files_of_columns(method: Any, content_type: str, write: str, read: Any) -> None:
    buffer = BytesIO()
    getattr(pandas.DataFrame({"a": [1, 2], "b": [1.5, 2.5]}), write)(buffer)
    given = File.from_bytes(buffer.getvalue(), content_type=content_type)
    doubled = call_sync(method, table=given)
    assert doubled.content_type == content_type
    assert read(doubled.open()).to_dict("list") == {"a": [2, 4], "b": [3.0, 5.0]}
    with pytest.raises(CallError, match="table: Value error"):
        call_sync(method, table=File.from_bytes(b"no table", content_type=content_type))


@pytest.mark.parametrize(
    ("result", "content_type", "said"),
    [
        (pandas.DataFrame, "text/tab-separated-values", "one of application/octet-stream, appl"),
        (pandas.DataFrame, "image/*", "pandas.DataFrame is not written as image/"),
        (numpy.ndarray, "image/png", "numpy.ndarray is not written as image/png"),
        (Image.Image, "image/svg+xml", "PIL.Image is not written as image/svg"),
    ],
)
def test_a_result_that_nothing_writes_as_its_type_is_refused(
    result: Any, content_type: str, said: str
) -> None:
    def method(self: object) -> None: ...

    method.__annotations__["return"] = Annotated[result, FileType(content_type)]
    cls = service(name="s")(type("S", (), {"method": api(method)}))
    with pytest.raises(ServiceError, match=said):
        HostedClass(definition_of(cls))  # type: ignore[arg-type]


@pytest.mark.parametrize("content_type", ["image/jpg", "image/gif", "image/*"])
def test_a_result_is_written_as_its_type(content_type: str) -> None:
    def method(self: object) -> Any:
        return Image.new("RGB", (1, 1), "red")

    method.__annotations__["return"] = Annotated[Image.Image, FileType(content_type)]
    cls: Any = service(name="s")(type("S", (), {"method": api(method)}))
    written = call_sync(cls.method)
    assert written.content_type == ("image/png" if content_type == "image/*" else content_type)
    assert Image.open(written.open()).size == (1, 1)
