"""Options that nobody reads: a name that is written wrong would be without effect."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from .executable import ServiceError

P = ParamSpec("P")
R = TypeVar("R")
Class = TypeVar("Class", bound=type)

_LEAST_ALIKE = 0.65
"""Of 1: ``retry`` and ``retries`` are 0.67."""


def refuse_unknown(given: Iterable[str], known: Sequence[str], place: str) -> None:
    """Raises ``ServiceError`` for a name that is no option, with the one that was meant."""
    for name in given:
        if name not in known:
            nearest = get_close_matches(name, known, n=1, cutoff=_LEAST_ALIKE)
            hint = f"did you mean {nearest[0]}?" if nearest else f"there are: {', '.join(known)}"
            raise ServiceError(f"{place} has no option {name}; {hint}")


def known_options(place: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that refuses other names than those of its parameters, before Python does."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = [
            parameter.name
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is not parameter.POSITIONAL_ONLY and parameter.name != "self"
        ]

        @wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            refuse_unknown(options, known, place)
            return function(*args, **options)

        return checked

    return decorate


def known_fields(cls: Class) -> Class:
    """The same for a class of options."""
    made: Any = cls
    made.__init__ = known_options(cls.__name__)(made.__init__)
    return cls
