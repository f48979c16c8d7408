"""The parameters of a function: which are arguments, and which is given the context."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from pydantic_core import PydanticUndefined

from .adapters import hints_of
from .context import Context
from .executable import ServiceError


@dataclass(frozen=True)
class Parameters:
    """What a function is called with, and what it returns."""

    arguments: dict[str, tuple[Any, Any]]
    """The hint and the default of each argument; the default may be pydantic's Undefined."""
    context_name: str | None
    """The parameter that is given the context; None without one."""
    returns: Any


def parameters_of(function: Callable[..., Any], place: str) -> Parameters:
    """Reads a method. Raises ``ServiceError`` for parameters that no caller can name."""
    hints = hints_of(function, place)
    arguments: dict[str, tuple[Any, Any]] = {}
    context_name: str | None = None
    # Without the instance, which a method is called on.
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        name = parameter.name
        at = f"{place}, parameter {name}"
        hint = hints.get(name, Any)
        if _is_context(hint):
            context_name = name
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ServiceError(f"{at}: write each argument by name; * and ** have no schema")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ServiceError(f"{at}: arguments are passed by name; remove the / after it")
        default = parameter.default
        arguments[name] = (hint, PydanticUndefined if default is parameter.empty else default)
    return Parameters(arguments, context_name, hints.get("return", Any))


def _is_context(hint: Any) -> bool:
    """True for ``Context`` and for ``Context | None``."""
    return any(
        isinstance(each, type) and issubclass(each, Context) for each in (hint, *get_args(hint))
    )
