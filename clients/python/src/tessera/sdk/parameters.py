"""The parameters of a function: which are arguments, and which is given the context."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic_core import PydanticUndefined

from .adapters import hints_of
from .context import Context
from .executable import ServiceError

_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


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
    every = list(inspect.signature(function).parameters.values())
    _check_instance(function, every, place)
    # Without the instance, which a method is called on.
    for parameter in every[1:]:
        name = parameter.name
        at = f"{place}, parameter {name}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ServiceError(f"{at}: write each argument by name; * and ** have no schema")
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ServiceError(f"{at}: arguments are passed by name; remove the / after it")
        if name not in hints:
            example = "Context" if name in ("ctx", "context") else "str"
            raise ServiceError(
                f"{at} has no type hint, which callers are told its type by: write "
                f"{name}: {example}, or {name}: Any to take anything"
            )
        hint = hints[name]
        if _is_context(hint):
            context_name = name
            continue
        default = parameter.default
        arguments[name] = (hint, PydanticUndefined if default is parameter.empty else default)
    if "return" not in hints:
        raise ServiceError(
            f"{place}: its result has no type hint, which callers are told its type by: write "
            "-> str after its parameters, -> None for nothing, or -> Any for anything"
        )
    return Parameters(arguments, context_name, hints["return"])


def _check_instance(
    function: Callable[..., Any], parameters: Sequence[inspect.Parameter], place: str
) -> None:
    """Raises for a method that does not take its instance: it would get it as an argument."""
    first = parameters[0] if parameters else None
    named = first is not None and (first.name == "self" or first.name.startswith("_"))
    if first is None or not named or first.kind not in _BY_POSITION:
        # One without a hint stands in the place of the instance under another name.
        has_other = first is not None and first.annotation is first.empty
        rest = parameters[1:] if has_other else parameters
        others = ", ".join(("self", *(str(each) for each in rest)))
        raise ServiceError(
            f"{place}: the first parameter of a method is its instance; "
            f"write def {function.__name__}({others})"
        )


def _is_context(hint: Any) -> bool:
    """True for ``Context`` and for ``Context | None``."""
    return any(
        isinstance(each, type) and issubclass(each, Context) for each in (hint, *get_args(hint))
    )
