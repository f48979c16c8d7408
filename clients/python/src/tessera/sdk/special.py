"""Types with a meaning of their own, by their annotation: files, pictures, arrays and tables.

``bytes``, ``pathlib.Path`` and ``PIL.Image.Image`` are files. ``numpy.ndarray`` and
``pandas.DataFrame`` are JSON, or files where ``FileType`` says of which type. Their packages are
imported by the service, and by nobody who does not name them.
"""

from __future__ import annotations

from pathlib import Path
from types import GenericAlias, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from .data import ArrayJson, TableJson
from .executable import ServiceError
from .files import BytesFile, File, FileAs, FileType, PathFile
from .media import read_array, read_picture, read_table, written_types


def described(hint: Any) -> Any:
    """The hint, in which such types say how they are read and written."""
    origin = get_origin(hint)
    if origin is Annotated:
        base, *about = get_args(hint)
        is_typed = any(isinstance(each, FileType) for each in about)
        inner = _special(base, as_file=is_typed)
        return annotated(described(base) if inner is None else inner, *about)
    special = _special(hint, as_file=False)
    if special is not None:
        return special
    if origin is list:
        return GenericAlias(list, tuple(map(described, get_args(hint))))
    if origin in (Union, UnionType):
        return Union[tuple(map(described, get_args(hint)))]  # noqa: UP007
    return hint


def is_file(hint: Any) -> bool:
    """True for the described hint of a result that is a file."""
    if get_origin(hint) is Annotated:
        base, *about = get_args(hint)
        return is_file(base) or any(isinstance(each, FileAs) for each in about)
    return isinstance(hint, type) and issubclass(hint, File)


def check_written(hint: Any, at: str) -> None:
    """Raises ``ServiceError`` for a result that nothing writes as its ``FileType`` says."""
    base, *about = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    kind = _name_of(get_origin(base) or base)
    declared = next((each.content_type for each in about if isinstance(each, FileType)), None)
    if kind not in ("PIL.Image", "numpy.ndarray", "pandas.DataFrame") or declared is None:
        return
    known = sorted(written_types(kind))
    # Of a range, one is chosen.
    start = declared.removesuffix("*").removesuffix("*/")
    if not any(each == declared or (each.startswith(start) and "*" in declared) for each in known):
        raise ServiceError(
            f"{at}: {kind} is not written as {declared}, but as one of {', '.join(known)}; "
            "change its FileType, or return a File"
        )


def _special(hint: Any, *, as_file: bool) -> Any:
    if hint is bytes:
        return BytesFile
    if hint is Path:
        return PathFile
    kind = _name_of(get_origin(hint) or hint)
    if kind == "PIL.Image":
        # A picture without a media type of its own is sent as PNG.
        about = (FileAs(read_picture), *(() if as_file else (FileType("image/*"),)))
        return annotated(hint, *about)
    if kind == "numpy.ndarray":
        reader = FileAs(read_array(hint)) if as_file else ArrayJson(hint)
        return annotated(get_origin(hint) or hint, reader)
    if kind == "pandas.DataFrame":
        return annotated(hint, FileAs(read_table) if as_file else TableJson())
    return None


def annotated(hint: Any, *about: Any) -> Any:
    """``Annotated`` with what is known only at run time."""
    form: Any = Annotated
    given = (hint, *about)
    return form[given]


def _name_of(hint: Any) -> str | None:
    """The package and the name of a class."""
    if not isinstance(hint, type):
        return None
    return f"{hint.__module__.partition('.')[0]}.{hint.__name__}"
