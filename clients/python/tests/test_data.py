"""Arrays and tables, given and taken by a client, to a service in Python and back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

numpy = pytest.importorskip("numpy")
pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from conftest import MakeClient  # noqa: E402
from servers import Server  # noqa: E402
from tessera import BadArguments, to_numpy, to_pandas  # noqa: E402

TABLE = pandas.DataFrame({"a": [1, 2], "b": [0.5, 1.5]})


@pytest.fixture(scope="module")
def data() -> Iterator[Server]:
    service = Path(__file__).with_name("data_service.py")
    with Server("--python", sys.executable, service=service) as started:
        yield started


def test_arrays_go_both_ways_as_numbers(make: MakeClient, data: Server) -> None:
    client = make(data.url)
    array = numpy.arange(6, dtype="int16").reshape(2, 3)
    doubled = client.double(array=array)
    assert doubled == [[0, 2, 4], [6, 8, 10]]
    assert (to_numpy(doubled) == array * 2).all()
    # Longer than what the node reads in place: it arrives as doubles.
    large = numpy.sin(numpy.arange(20_000)).reshape(100, 200)
    assert (to_numpy(client.double(array=large)) == large * 2).all()
    assert client.double(array=[numpy.float64(1.5), numpy.int8(2)]) == [3, 4]
    with pytest.raises(BadArguments, match="array is no JSON"):
        client.double(array=numpy.array([1, numpy.nan]))
    with pytest.raises(ValueError, match="is no array"):
        to_numpy([1, "a", None])


def test_tables_go_both_ways_as_rows(make: MakeClient, data: Server) -> None:
    client = make(data.url)
    task = client.total.submit(table=TABLE)
    assert to_pandas(task.wait()).to_dict("records") == [{"a": 3, "b": 2}]
    assert client.double(array=TABLE["b"]) == [1, 3]


def test_what_is_missing_in_a_table_is_null(make: MakeClient, data: Server) -> None:
    when = pandas.Timestamp("2026-01-02T03:04:05Z")
    table = pandas.DataFrame({"n": [1.5, None], "s": ["x", None], "t": [when, pandas.NaT]})
    assert make(data.url).missing(table=table) == 3


def test_arrays_are_files_where_the_endpoint_takes_files(make: MakeClient, data: Server) -> None:
    client = make(data.url)
    halved = client.halve(array=numpy.array([2.0, 4.0], dtype="float32"))
    assert to_numpy(halved).tolist() == [1, 2]
    assert to_numpy(halved).dtype == "float32"
    assert to_numpy(client.halve(array=halved)).tolist() == [0.5, 1]
    with pytest.raises(BadArguments, match="application/x-npy: give such a file, not DataFrame"):
        client.halve(array=TABLE)
    with pytest.raises(ValueError, match="x-npy, not "):
        to_pandas(halved)


@pytest.mark.parametrize("form", ["csv", "arrow", "parquet"])
def test_tables_are_files_where_the_endpoint_takes_files(
    make: MakeClient, data: Server, form: str
) -> None:
    endpoint = make(data.url).endpoint(form)
    doubled = to_pandas(endpoint(table=TABLE))
    pandas.testing.assert_frame_equal(doubled, TABLE * 2)
    with pytest.raises(ValueError, match="not application/x-npy"):
        to_numpy(endpoint(table=TABLE))


def test_a_program_without_them_imports_neither(make: MakeClient, data: Server) -> None:
    program = (
        "import sys; from tessera import SyncHTTPClient\n"
        "print(SyncHTTPClient(sys.argv[1]).double(array=(1, 2)))\n"
        "print('numpy' in sys.modules or 'pandas' in sys.modules)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program, data.url],
        check=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[1] / "src")},
    )
    assert said.stdout == "[2, 4]\nFalse\n"
