"""What callers see of BentoML's exceptions and of pydantic's."""

from __future__ import annotations

from typing import Any

from bentoml.exceptions import BentoMLException
from pydantic import ValidationError

from ..sdk.errors import code_of_status
from ..sdk.executable import CallError


def arguments_invalid(endpoint: str, error: ValidationError, root: str | None) -> CallError:
    """Arguments that the input spec refused; ``root`` is the one argument of a root input."""
    violations = [
        (_path(each["loc"], root), each["msg"])
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    said = "; ".join(f"{path}: {message}" if path else message for path, message in violations)
    return CallError(
        f"arguments of {endpoint} are invalid: {said}",
        code="invalid_argument",
        reason="ARGUMENTS_INVALID",
        violations=violations,
    )


def file_unreadable(endpoint: str, error: Exception) -> CallError:
    """A file of the arguments that is not of the kind that the function takes."""
    return CallError(
        f"arguments of {endpoint} are invalid: a file cannot be read: {error}",
        code="invalid_argument",
        reason="ARGUMENTS_INVALID",
    )


def output_invalid(endpoint: str, why: object) -> CallError:
    """A result that cannot be sent."""
    return CallError(f"the result of {endpoint} cannot be sent: {why}", reason="OUTPUT_INVALID")


def raised(error: Exception) -> Exception:
    """What an exception of the function becomes; others are CALL_FAILED by themselves."""
    told: Any = error
    if isinstance(error, BentoMLException):
        status = int(told.error_code)
        failure = CallError(str(error), code=code_of_status(status), status=status)
    elif isinstance(error, ValidationError):
        # As BentoML answers it, which cannot tell it from wrong arguments.
        failure = CallError(str(error), code="invalid_argument")
    else:
        return error
    failure.__cause__ = error
    return failure


def _path(location: tuple[Any, ...], root: str | None) -> str:
    parts = list(location)
    if root is not None and parts[:1] == ["root"]:
        parts[0] = root
    return ".".join(str(each) for each in parts)
