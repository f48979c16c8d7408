"""The run options of an endpoint, with their defaults and limits: those of the TypeScript SDK."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, TypeGuard

from .executable import ServiceError
from .placement import check_placement
from .unknown import refuse_unknown

Duration = int | float | str | timedelta
"""Seconds, a ``timedelta``, or a text with a unit such as ``"30s"``, ``"5m"`` or ``"1.5h"``."""

SECOND_MS = 1_000
HOUR_MS = 3_600 * SECOND_MS
DAY_MS = 24 * HOUR_MS
MAX_DESCRIPTION_CHARACTERS = 10_000
MAX_PROCESSES = 1_000
MAX_GPUS = 16
MAX_GPU_MEMORY_MIB = 1_048_576
MAX_MODELS = 32
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_MODEL_SOURCE = re.compile(r"(?:hf|s3|https|model|bentoml)://[!-~]{1,2040}")

_UNITS_MS = {"ms": 1, "s": SECOND_MS, "m": 60 * SECOND_MS, "h": HOUR_MS, "d": DAY_MS}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")

Size = int | str
"""Bytes, or a text with a unit such as ``"512KiB"`` or ``"64MiB"``."""

MAX_JSON_BYTES = 256 * 1024**2
_SIZE_UNITS = {"KiB": 1024, "MiB": 1024**2}
_SIZE = re.compile(r"(\d{1,9})(KiB|MiB)")
MAX_HEADERS = 100
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")

MAX_PACKAGES = 64
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]{0,126}[a-z0-9+.](?:=[0-9][A-Za-z0-9.+:~-]{0,127})?")

_IMAGE_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_IMAGE = re.compile(
    r"(?:(?:(?=[^/]*[.:]|localhost/)[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?)/)?"
    rf"{_IMAGE_PART}(?:/{_IMAGE_PART})*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)

_COMMON_OPTIONS = (
    *("name", "description", "timeout", "abort_grace", "concurrency", "batch", "max_json"),
    *("requires", "place", "headers", "concurrency_per_key", "rate_per_key"),
)
OPTIONS = {
    "api": (*_COMMON_OPTIONS, "idempotent"),
    "task": (
        *(*_COMMON_OPTIONS, "retries", "backoff", "retention", "queue_limit", "priority"),
        "fair",
    ),
}
"""The names of the options of an endpoint."""

DEFAULT_TIMEOUTS_MS = {"api": 60 * SECOND_MS, "task": 600 * SECOND_MS}
"""Callers of an api, and proxies, rarely wait longer."""
DEFAULT_CONCURRENCY = {"api": 100, "task": 1}
"""An api mostly waits; a task mostly computes."""


def check_names(kind: str, names: Iterable[str], place: str) -> None:
    """Raises ``ServiceError`` for an option that an endpoint of this kind does not have."""
    known = OPTIONS[kind]
    for name in names:
        other = "task" if kind == "api" else "api"
        if name not in known and name in OPTIONS[other]:
            raise ServiceError(f"{place}: {name} is an option of @{other}, not of @{kind}")
        refuse_unknown([name], known, place)


def resolve_options(kind: str, options: dict[str, Any], place: str) -> dict[str, Any]:
    """The options as the manifest has them. Raises ``ServiceError`` that names a wrong one."""

    def given(name: str, default: Any) -> Any:
        value = options.get(name)
        return default if value is None else value

    def duration(name: str, default_ms: int, least: int, most: int) -> int:
        return milliseconds(
            given(name, timedelta(milliseconds=default_ms)), place, name, least, most
        )

    def integer(name: str, default: int, least: int, most: int) -> int:
        return whole_number(given(name, default), place, name, least, most)

    # What comes while a batch runs gathers into the next one; free slots would scatter it.
    concurrency = DEFAULT_CONCURRENCY[kind] if options.get("batch") is None else 1
    abort_grace = options.get("abort_grace")
    return {
        "timeoutMs": duration("timeout", DEFAULT_TIMEOUTS_MS[kind], 1, DAY_MS),
        **(
            {}
            if abort_grace is None
            else {"abortGraceMs": milliseconds(abort_grace, place, "abort_grace", 1, DAY_MS)}
        ),
        **_idempotent(kind, options.get("idempotent"), place),
        "concurrency": integer("concurrency", concurrency, 1, 1_000),
        "retentionMs": duration("retention", DAY_MS, SECOND_MS, 365 * DAY_MS),
        "retries": {
            "max": integer("retries", 0, 0, 100),
            "backoffMs": duration("backoff", SECOND_MS, 0, HOUR_MS),
        },
        "queueLimit": integer("queue_limit", 10_000, 1, 10_000_000),
        "priority": integer("priority", 0, -1_000, 1_000),
        **_by_key(options, place),
        **_max_json(options.get("max_json"), place),
        **check_placement(options.get("requires"), options.get("place"), place),
        **_check_headers(options.get("headers"), place),
    }


def key_limits(concurrency: object, rate: object, place: str) -> dict[str, Any]:
    """What one key may have, of an endpoint or a mounted server."""
    by_key: dict[str, Any] = {}
    if concurrency is not None:
        by_key["concurrency"] = whole_number(concurrency, place, "concurrency_per_key", 1, 10_000)
    if rate is not None:
        by_key["rate"] = _rate(rate, place)
    return by_key


def _by_key(options: dict[str, Any], place: str) -> dict[str, Any]:
    concurrency, rate, fair = (
        options.get(name) for name in ("concurrency_per_key", "rate_per_key", "fair")
    )
    if fair is not None and not isinstance(fair, bool) and fair != "seconds":
        raise ServiceError(f'{place}: fair must be True, False or "seconds"')
    by_key = key_limits(concurrency, rate, place)
    if fair == "seconds":
        by_key["fair"] = fair
    return {"byKey": by_key} if by_key or fair else {}


_PERIODS_MS = {"s": SECOND_MS, "min": 60 * SECOND_MS, "h": HOUR_MS, "d": DAY_MS}


def _rate(rate: object, place: str) -> dict[str, int]:
    match = re.fullmatch(r"([1-9][0-9]{0,4})/(s|min|h|d)", rate) if isinstance(rate, str) else None
    if match is None or int(match[1]) > 10_000:
        raise ServiceError(
            f"{place}: rate_per_key must be a number from 1 to 10000 and a time, s, min, h or d, "
            f'such as "10/min", not {rate!r}'
        )
    return {"count": int(match[1]), "periodMs": _PERIODS_MS[match[2]]}


def check_description(description: object, place: str) -> str | None:
    """A description of a permitted length."""
    if description is None:
        return None
    if not isinstance(description, str) or len(description) > MAX_DESCRIPTION_CHARACTERS:
        most = MAX_DESCRIPTION_CHARACTERS
        raise ServiceError(
            f"{place}: the description must be a text of at most {most:,} characters"
        )
    return description


def check_ready_timeout(value: object, place: str) -> int | None:
    """The option ``ready_timeout`` of a service, in milliseconds; None without one."""
    if value is None:
        return None
    return milliseconds(value, place, "ready_timeout", SECOND_MS, DAY_MS)


def check_processes(value: object, place: str) -> int | None:
    """The option ``processes`` of a service; None without one."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_PROCESSES:
        raise ServiceError(
            f"{place}: processes must be a whole number from 0 to {MAX_PROCESSES:,}, not {value!r}"
        )
    return value


def check_gpus(gpus: object, memory: object, place: str) -> dict[str, float]:
    """The options ``gpus`` and ``gpu_memory`` of a service, as the manifest has them."""
    checked: dict[str, float] = {}
    if gpus is not None:
        if not _is_gpus(gpus):
            raise ServiceError(
                f"{place}: gpus must be a whole number from 0 to {MAX_GPUS}, or a part of one GPU "
                f"in hundredths, such as 0.5, not {gpus!r}"
            )
        checked["gpus"] = int(gpus) if gpus == int(gpus) else gpus
    if memory is not None:
        found = _GPU_MEMORY.fullmatch(memory) if isinstance(memory, str) else None
        mib = int(found[1]) * (1024 if found[2] == "Gi" else 1) if found else 0
        if not 1 <= mib <= MAX_GPU_MEMORY_MIB:
            raise ServiceError(
                f"{place}: gpu_memory must be a size from 1MiB to 1024GiB, "
                f'such as "20GiB", not {memory!r}'
            )
        checked["gpuMemoryMib"] = mib
    return checked


def _is_gpus(gpus: object) -> TypeGuard[float]:
    if isinstance(gpus, bool) or not isinstance(gpus, int | float) or not 0 <= gpus <= MAX_GPUS:
        return False
    return gpus == int(gpus) or (gpus < 1 and round(gpus, 2) == gpus)


_GPU_MEMORY = re.compile(r"(\d{1,7})(Mi|Gi)B?")


def check_packages(names: object, place: str) -> list[str]:
    """The option ``packages`` of a service; empty without one."""
    if names is None:
        return []
    given = list(names) if isinstance(names, (list, tuple)) else None
    if given is None or len(given) > MAX_PACKAGES:
        raise ServiceError(
            f"{place}: packages must be a list of at most {MAX_PACKAGES} names of system packages"
        )
    for name in given:
        if not isinstance(name, str) or not _PACKAGE.fullmatch(name):
            raise ServiceError(
                f"{place}: packages has {name!r:.100}, which is no name of a system package "
                "such as ffmpeg, nor a name with a version such as ffmpeg=7:5.1.6-0+deb12u1"
            )
    return given


def check_image(value: object, place: str) -> str | None:
    """The option ``image`` of a service; None without one."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > 512 or not _IMAGE.fullmatch(value):
        raise ServiceError(
            f"{place}: image is {value!r:.100}, which is no name of a container image such as "
            "debian:12 or registry.example.com/acme/reader@sha256:… with 64 digits"
        )
    return value


def check_models(value: object, place: str) -> dict[str, str] | None:
    """The option ``models`` of a service; None without one."""
    if value is None:
        return None
    if (
        not isinstance(value, Mapping)
        or len(value) > MAX_MODELS
        or not all(isinstance(name, str) and _MODEL_NAME.fullmatch(name) for name in value)
        or not all(isinstance(at, str) and _MODEL_SOURCE.fullmatch(at) for at in value.values())
    ):
        raise ServiceError(
            f"{place}: models must be at most {MAX_MODELS} names of letters, digits, - and _, each "
            'with a source such as "hf://Qwen/Qwen3-0.6B", "s3://weights/qwen", '
            '"https://…#sha256=…", "model://reader@3" or "bentoml://reader:latest", '
            f"not {value!r}"
        )
    return dict(value)


def _check_headers(names: object, place: str) -> dict[str, Any]:
    """The option ``headers`` as the manifest has it."""
    if names is None:
        return {}
    given = [str(name).lower() for name in names] if isinstance(names, (list, tuple)) else None
    if given is None or len(given) > MAX_HEADERS or not all(map(_HEADER.fullmatch, given)):
        raise ServiceError(
            f"{place}: headers must be a list of at most {MAX_HEADERS} names of headers, "
            'such as ["x-tenant"]'
        )
    return {"request": {"headers": given}}


def _idempotent(kind: str, value: object, place: str) -> dict[str, bool]:
    """The option ``idempotent`` as the manifest of an api has it."""
    if not isinstance(value, bool | None):
        raise ServiceError(f"{place}: idempotent must be True or False, not {value!r}")
    return {"idempotent": True} if value and kind == "api" else {}


def milliseconds_of(value: object) -> int | None:
    """A duration in milliseconds, rounded; None for what is none."""
    if isinstance(value, timedelta):
        return round(value.total_seconds() * SECOND_MS)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return round(value * SECOND_MS) if 0 <= value < 10**12 else None
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    return None if match is None else round(float(match[1]) * _UNITS_MS[match[2]])


def format_duration(ms: int) -> str:
    """The shortest spelling of a duration: ``1h``, ``90s``, ``20ms``."""
    for unit in ("d", "h", "m", "s"):
        if ms >= _UNITS_MS[unit] and ms % _UNITS_MS[unit] == 0:
            return f"{ms // _UNITS_MS[unit]}{unit}"
    return f"{ms}ms"


def _max_json(value: object, place: str) -> dict[str, int]:
    """The size limit of JSON bodies, if one is given."""
    if value is None:
        return {}
    return {"maxJsonBytes": byte_count(value, place, "max_json", MAX_JSON_BYTES)}


def byte_count(value: object, place: str, name: str, most: int) -> int:
    """A size of at least 1 KiB. Raises ``ServiceError`` that names the option."""
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    size = value if match is None else int(match[1]) * _SIZE_UNITS[match[2]]
    if not isinstance(size, int) or isinstance(size, bool) or not 1024 <= size <= most:
        raise ServiceError(
            f'{place}: {name} must be bytes or a size such as "512KiB" or "2MiB", '
            f"from 1KiB to {most // 1024**2}MiB, not {value!r}"
        )
    return size


def milliseconds(value: object, place: str, name: str, least: int, most: int) -> int:
    """A duration within its limits. Raises ``ServiceError`` that names the option."""
    ms = milliseconds_of(value)
    if ms is None or not least <= ms <= most:
        raise ServiceError(
            f'{place}: {name} must be seconds or a duration such as "30s" or "5m", '
            f"from {format_duration(least)} to {format_duration(most)}, not {value!r}"
        )
    return ms


def whole_number(value: object, place: str, name: str, least: int, most: int) -> int:
    """A whole number within its limits. Raises ``ServiceError`` that names the option."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise ServiceError(
            f"{place}: {name} must be a whole number from {least:,} to {most:,}, not {value!r}"
        )
    return value
