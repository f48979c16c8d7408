"""Types that are files, by their annotation: ``bytes`` and ``pathlib.Path``."""

from __future__ import annotations

from pathlib import Path
from types import GenericAlias, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from .files import BytesFile, File, PathFile

_FILES: dict[Any, Any] = {bytes: BytesFile, Path: PathFile}


def as_files(hint: Any) -> Any:
    """The hint, in which types that are files are described as such."""
    if hint in _FILES:
        return _FILES[hint]
    origin = get_origin(hint)
    if origin is Annotated:
        base, *about = get_args(hint)
        return Annotated.__class_getitem__((as_files(base), *about))
    if origin is list:
        return GenericAlias(list, tuple(map(as_files, get_args(hint))))
    if origin in (Union, UnionType):
        return Union[tuple(map(as_files, get_args(hint)))]  # noqa: UP007
    return hint


def is_file(hint: Any) -> bool:
    """True for the hint of a result that is a file."""
    origin = get_origin(hint)
    if origin is Annotated:
        return is_file(get_args(hint)[0]) or hint in _FILES.values()
    return isinstance(hint, type) and issubclass(hint, (File, bytes, Path))
