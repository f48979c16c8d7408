"""Arrays of numpy and tables of pandas as arguments and as results, for programs that have them.

Nothing here imports either until a program gives or wants one of theirs; what a value is, is read
off the class that it has.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import date, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any

from .errors import BadArguments, Facts, Violation
from .files import ResultFile, Upload

if TYPE_CHECKING:
    import numpy
    import pandas

NPY = "application/x-npy"
"""An array with its type and shape: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html"""

CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.file"
PARQUET = "application/vnd.apache.parquet"


def to_numpy(result: Any) -> numpy.ndarray[Any, Any]:
    """The array of a result: of numbers or nested lists of them, or of an .npy file.

    Raises `ValueError` for lists of different lengths and for a file of another type.
    """
    import numpy

    if not isinstance(result, ResultFile):
        array = numpy.asarray(result)
        if array.dtype == object:
            raise ValueError("the result is no array: its lists differ in length or in type")
        return array
    if _media_type(result.content_type) == NPY or (result.name or "").endswith(".npy"):
        with result.open() as file:
            loaded: numpy.ndarray[Any, Any] = numpy.load(file, allow_pickle=False)
            return loaded
    raise ValueError(f"the result is a file of the type {result.content_type}, not {NPY}")


def to_pandas(result: Any) -> pandas.DataFrame:
    """The table of a result: of rows, of columns by name, or of a file (CSV, Arrow or Parquet;
    the last two need pyarrow).

    Raises `ValueError` for what is no table.
    """
    import pandas

    if not isinstance(result, ResultFile):
        return pandas.DataFrame(result)
    kind = _media_type(result.content_type)
    readers: dict[str, Any] = {
        ARROW: pandas.read_feather,
        PARQUET: pandas.read_parquet,
        CSV: pandas.read_csv,
    }
    if kind not in readers:
        raise ValueError(f"the result is a file of the type {kind}, not {', '.join(readers)}")
    with result.open() as file:
        table: pandas.DataFrame = readers[kind](file)
        return table


def plain(value: Any) -> Any:
    """What JSON has for a value that it does not know: the last resort of `json.dumps`.

    Raises `TypeError`, as that does, for what has no JSON. What is missing in a table (NaN, NaT)
    is null; in an array it is refused, because JSON has no such number.
    """
    if _is(value, "numpy", "ndarray", "generic"):
        return value.astype(str).tolist() if value.dtype.kind in "mM" else value.tolist()
    if _is(value, "pandas", "DataFrame"):
        rows = value.to_dict(orient="records")
        return [{str(name): _cell(cell) for name, cell in row.items()} for row in rows]
    if _is(value, "pandas", "Series", "Index"):
        return [_cell(cell) for cell in value.tolist()]
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (Sequence, Set)) and not isinstance(value, (bytes, bytearray, memoryview)):
        return list(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def as_upload(name: str, value: Any, content_type: str) -> Any:
    """The file of an array or a table, as the endpoint takes it; other values as they are.

    `content_type`: of the argument; empty for a file of any type. Raises `BadArguments` for one
    that the value cannot be written as.
    """
    if _is(value, "numpy", "ndarray"):
        if content_type in (NPY, ""):
            import numpy

            buffer = BytesIO()
            numpy.save(buffer, value, allow_pickle=False)
            return Upload(buffer.getvalue(), name=f"{name}.npy", content_type=NPY)
    elif _is(value, "pandas", "DataFrame"):
        if content_type in _TABLES:
            suffix, write = _TABLES[content_type]
            buffer = BytesIO()
            write(value, buffer)
            kind = content_type or CSV
            return Upload(buffer.getvalue(), name=f"{name}.{suffix}", content_type=kind)
    else:
        return value
    what = f"is a file of the type {content_type}: give such a file, not {type(value).__name__}"
    raise BadArguments(f"{name} {what}", Facts(violations=[Violation(name, what)]))


_Write = Callable[[Any, BytesIO], object]

_TABLES: Mapping[str, tuple[str, _Write]] = {
    "": ("csv", lambda table, buffer: table.to_csv(buffer, index=False)),
    CSV: ("csv", lambda table, buffer: table.to_csv(buffer, index=False)),
    ARROW: ("arrow", lambda table, buffer: table.to_feather(buffer)),
    PARQUET: ("parquet", lambda table, buffer: table.to_parquet(buffer, index=False)),
}


def _cell(value: Any) -> Any:
    """A cell of a table, or a missing one."""
    is_missing = type(value).__name__ in ("NaTType", "NAType")
    return None if is_missing or (isinstance(value, float) and math.isnan(value)) else value


def _is(value: Any, package: str, *names: str) -> bool:
    """Whether a value is of such a class; a package that nobody has imported has no values."""
    module = sys.modules.get(package)
    kinds = (getattr(module, name, None) for name in names)
    return any(isinstance(kind, type) and isinstance(value, kind) for kind in kinds)


def _media_type(text: str) -> str:
    return text.partition(";")[0].strip().lower()
