"""Which machines run a service or an endpoint: the rules are those of the TypeScript SDK."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, get_args

from .executable import ServiceError

Place = Literal["local", "remote", "any"]
"""Who brings the workers: the nodes of the platform, machines that join, or both."""

MAX_LABELS = 32

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"\*|[A-Za-z0-9](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9])?")


def check_placement(requires: object, place: object, at: str) -> dict[str, Any]:
    """The placement as the manifest has it; empty where none is said. Raises ``ServiceError``."""
    manifest: dict[str, Any] = {}
    if requires is not None:
        labels = _labels(requires, at)
        if labels:
            manifest["requires"] = labels
    if place is not None:
        if place not in get_args(Place):
            raise ServiceError(f'{at}: place must be "local", "remote" or "any", not {place!r}')
        manifest["place"] = place
    return manifest


def _labels(requires: object, at: str) -> dict[str, str]:
    if not isinstance(requires, Mapping):
        raise ServiceError(
            f'{at}: requires must have labels with their values, such as {{"gpu": "*"}}'
        )
    if len(requires) > MAX_LABELS:
        raise ServiceError(f"{at}: requires may have at most {MAX_LABELS} labels")
    for name, value in requires.items():
        label = f"{at}: requires: label {name!r}"
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ServiceError(
                f"{label} must have a name of at most 63 letters, digits, dots, slashes, hyphens "
                "and underscores, such as gpu"
            )
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            raise ServiceError(
                f"{label} must have a value of letters, digits, dots, hyphens and underscores, "
                "such as h200, or * for any"
            )
    return dict(requires)
