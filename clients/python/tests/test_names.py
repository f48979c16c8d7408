"""The names of the package: those that are imported when they are used, and no others."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import tessera


def test_every_public_name_is_imported_when_it_is_used() -> None:
    assert [name for name in tessera.__all__ if not hasattr(tessera, name)] == []
    assert set(tessera.__all__) <= set(dir(tessera))


def test_type_checkers_know_the_names_that_are_imported_when_they_are_used() -> None:
    module = ast.parse(Path(tessera.__file__).read_text())
    for_checkers = next(
        each for each in module.body if isinstance(each, ast.If) and isinstance(each.test, ast.Name)
    )
    imported = {
        f"{each.module}.{alias.name}"
        for each in for_checkers.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    lazily = {f"{module}.{name}" for module, names in tessera._MODULES.items() for name in names}
    assert imported == lazily
    assert {name.rpartition(".")[2] for name in lazily} | {"__version__"} == set(tessera.__all__)


def test_a_name_that_is_not_there_cannot_be_imported() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Nope' from 'tessera'"):
        from tessera import Nope  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError, match="module 'tessera' has no attribute 'Nope'"):
        tessera.Nope  # type: ignore[attr-defined]  # noqa: B018
