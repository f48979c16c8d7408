"""Pictures, arrays and tables as files, by their media type."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from io import BytesIO
from typing import Any

from .data import dtype_of
from .files import File

NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.file"
PARQUET = "application/vnd.apache.parquet"
CSV = "text/csv"
TABLE_TYPES = (ARROW, PARQUET, CSV)
BINARY = "application/octet-stream"


def read_picture(file: File) -> Any:
    """A ``PIL.Image.Image``."""
    from PIL import Image, UnidentifiedImageError

    try:
        picture = Image.open(file.open())
        picture.load()
    except (UnidentifiedImageError, OSError) as error:
        raise ValueError(f"must be a picture: {error}") from None
    return picture


def read_array(hint: Any) -> Callable[[File], Any]:
    """Reads a ``numpy.ndarray`` from an ``.npy`` file, which holds no objects."""
    dtype = dtype_of(hint)

    def read(file: File) -> Any:
        import numpy

        try:
            array = numpy.load(file.open(), allow_pickle=False)
        except (ValueError, OSError, EOFError) as error:
            raise ValueError(f"must be an .npy file: {error}") from None
        return array if dtype is None else array.astype(dtype, copy=False)

    return read


def read_table(file: File) -> Any:
    """A ``pandas.DataFrame`` of an Arrow, Parquet or CSV file, as its media type says."""
    import pandas

    readers = {ARROW: pandas.read_feather, PARQUET: pandas.read_parquet, CSV: pandas.read_csv}
    reader = readers.get(file.content_type.partition(";")[0])
    if reader is None:
        raise ValueError(f"must be one of {', '.join(readers)}, not {file.content_type}")
    try:
        return reader(file.open())
    except (ValueError, OSError) as error:
        raise ValueError(f"cannot be read as {file.content_type}: {error}") from None


def write_media(value: Any, declared: str | None) -> File | None:
    """A picture, an array or a table as a file of the declared type; None for anything else."""
    kind = f"{type(value).__module__.partition('.')[0]}.{type(value).__name__}"
    if kind.startswith("PIL."):
        return _write_picture(value, declared)
    if kind == "numpy.ndarray":
        import numpy

        buffer = BytesIO()
        numpy.save(buffer, value, allow_pickle=False)
        return File(buffer.getvalue(), guessed_type=NPY)
    return _write_table(value, declared) if kind == "pandas.DataFrame" else None


def written_types(kind: str) -> Sequence[str]:
    """The media types that values of a class are written as; a class is ``package.Name``."""
    if kind == "PIL.Image":
        return tuple(_picture_formats())
    # Bytes of no type in particular say nothing wrong.
    return (NPY, BINARY) if kind == "numpy.ndarray" else (*TABLE_TYPES, BINARY)


def _picture_formats() -> Mapping[str, str]:
    """What Pillow calls the formats that it writes, by their media type."""
    from PIL import Image

    Image.init()
    formats = {media_type: name for name, media_type in Image.MIME.items() if name in Image.SAVE}
    return {**formats, "image/jpg": "JPEG"}


def _write_picture(picture: Any, declared: str | None) -> File:
    kind = "image/png" if declared is None or declared.endswith("/*") else declared
    name = _picture_formats().get(kind)
    if name is None:
        raise ValueError(f"Pillow writes no {kind}")
    buffer = BytesIO()
    picture.save(buffer, format=name)
    return File(buffer.getvalue(), content_type=kind)


def _write_table(table: Any, declared: str | None) -> File:
    buffer = BytesIO()
    if declared == PARQUET:
        table.to_parquet(buffer)
        return File(buffer.getvalue(), guessed_type=PARQUET)
    if declared in (CSV, "text/*"):
        table.to_csv(buffer, index=False)
        return File(buffer.getvalue(), guessed_type=CSV)
    table.to_feather(buffer)
    return File(buffer.getvalue(), guessed_type=ARROW)
