"""The manifest of a BentoML service, as the node reads it."""

from __future__ import annotations

import inspect
import json
import math
import os
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, get_args, get_origin

from bentoml import Model as StoredModel  # pyright: ignore[reportAttributeAccessIssue]
from bentoml.models import BentoModel, HuggingFaceModel

from ..sdk.acceptance import accepted
from ..sdk.adapters import is_text
from ..sdk.batches import DEFAULT_MAX_BYTES, MAX_BATCH_SIZE
from ..sdk.executable import PROGRAM_PROCESSES, Json, ServiceError
from . import internals
from .routes import check_endpoint, endpoint_name, refuse_shared
from .schemas import (
    Schema,
    describe_file,
    file_of,
    is_portable_pattern,
    translate_input,
    translate_output,
)

SECOND_MS = 1_000
DAY_MS = 86_400 * SECOND_MS
DEFAULT_TIMEOUT_SECONDS = 60
"""BentoML's, for what answers in the call."""
DEFAULT_CONCURRENCY = 100
"""Calls of an asynchronous method at a time; BentoML has no limit."""
MAX_CONCURRENCY = 1_000
DEFAULT_QUEUE_LIMIT = 10_000
MAX_QUEUE_LIMIT = 10_000_000
MAX_DESCRIPTION_CHARACTERS = 10_000
MAX_WORKERS = 256
MAX_GPUS = 16

BATCH_WAIT_MS = 10
"""How long BentoML's dispatcher waits for company when it begins; ``max_latency_ms`` bounds it."""

MAX_JSON_BYTES = 64 * 1024**2
"""BentoML has no limit: a batch of pictures as arrays has tens of megabytes."""

MAX_DESCRIBED_VALUES = 10_000
"""Of BentoML's description of the service, which repeats a model wherever it is used."""

MAX_PREFLIGHT_SECONDS = 86_400
"""Browsers keep the answer to a preflight no longer."""


def service_name(name: str) -> str:
    """The name as a DNS label: ``TextReader`` is ``text-reader``."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    label = re.sub(r"[^a-z0-9]+", "-", words.lower())[:63].strip("-")
    return label or "service"


def service_manifest(
    service: Any,
    endpoints: list[Json],
    config: Mapping[str, Any],
    *,
    gpus: float,
    models: Mapping[str, Json],
    mounts: Sequence[Mapping[str, Json]] = (),
) -> dict[str, Json]:
    """``ServiceManifest`` of the node. BentoML's own description of the service is kept in it."""
    refuse_shared(endpoints)
    manifest: dict[str, Json] = {
        "name": service_name(service.name),
        "endpoints": endpoints,
        "workers": max(1, min(_workers(config), MAX_WORKERS)),
    }
    if mounts:
        manifest["mounts"] = [dict(each) for each in mounts]
    if any(internals.has_command(each) for each in service.all_services().values()):
        # Each would start the command, at the same port.
        manifest["workers"] = 1
        manifest["processes"] = PROGRAM_PROCESSES
    cors = cors_of(service.name, config)
    if cors is not None:
        manifest["cors"] = cors
    if gpus:
        manifest["gpus"] = min(gpus, MAX_GPUS)
    if models:
        manifest["models"] = dict(models)
    said = _description(getattr(service, "description", None) or service.inner.__doc__)
    if said:
        manifest["description"] = said
    described = _described(service)
    if described is not None:
        manifest["compat"] = {"bentoml": described}
    return manifest


def models_of(services: Iterable[Any]) -> dict[str, Json]:
    """Class attributes that are models, as their sources, by the names of service and attribute.

    BentoML finds them in the cache of the hub and in its own store, where the node has them.
    """
    return {
        f"{service_name(service.name)}-{name}": source
        for service in services
        for name in dir(service.inner)
        if (source := _source_of(getattr(service.inner, name, None))) is not None
    }


def _source_of(value: Any) -> str | None:
    if isinstance(value, HuggingFaceModel):
        branch = "" if value.revision == "main" else f"@{value.revision}"
        return f"hf://{value.model_id}{branch}"
    # The latter is what ``bentoml.models.get`` returns.
    if isinstance(value, (BentoModel, StoredModel)):
        return f"bentoml://{value.tag}"
    return None


def cors_of(name: str, config: Mapping[str, Any]) -> dict[str, Json] | None:
    """``CorsManifest`` of the node: which pages of other sites ``http={"cors": …}`` lets call."""
    said = (config.get("http") or {}).get("cors") or {}
    if not said.get("enabled"):
        return None
    get = {key.removeprefix("access_control_"): value for key, value in said.items()}.get
    pattern = get("allow_origin_regex")
    pattern = getattr(pattern, "pattern", pattern)
    origins = _names(get("allow_origins"))
    if pattern is not None and not is_portable_pattern(pattern):
        raise ServiceError(
            f"{name}: the node cannot read access_control_allow_origin_regex {pattern!r}: "
            "write it without what only Python knows, or list the origins"
        )
    if not origins and pattern is None:
        raise ServiceError(f"{name}: cors is enabled without access_control_allow_origins")
    cors: dict[str, Json] = {"origins": origins}
    if pattern is not None:
        cors["originPattern"] = pattern
    if get("allow_credentials"):
        cors["credentials"] = True
    for key, names in (
        ("methods", get("allow_methods")),
        ("headers", get("allow_headers")),
        ("exposedHeaders", get("expose_headers")),
    ):
        if names is not None:
            cors[key] = _names(names)
    if get("max_age") is not None:
        cors["maxAgeSeconds"] = max(0, min(int(str(get("max_age"))), MAX_PREFLIGHT_SECONDS))
    return cors


def _names(names: Any) -> list[Json]:
    """BentoML takes one text, or a list of them."""
    return [names] if isinstance(names, str) else [str(each) for each in names or ()]


def _described(service: Any) -> Json | None:
    """BentoML's description; None where it is too large, or a model in it contains itself."""
    try:
        described = service.schema()
        routes = {each.name: internals.route_of(service, each) for each in service.apis.values()}
        for each in described["routes"]:
            each["route"] = routes.get(each["name"], each.get("route"))
        text = json.dumps(described, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return described if text.count(",") < MAX_DESCRIBED_VALUES else None


class Shape:
    """What a method takes and returns, read from its specs once."""

    def __init__(self, method: Any) -> None:
        spec, output = method.input_spec, method.output_spec
        schema = spec.model_json_schema()
        self.takes_root = internals.takes_root(spec)
        taken = accepted(spec.__pydantic_core_schema__)
        self.is_model = self.takes_root and not internals.is_root_model(spec)
        """True for a model before ``/``."""
        is_value = internals.is_root_model(spec) or (
            self.is_model and not spec.multipart_fields and taken.get("type") != "object"
        )
        self.root = _root_parameter(method) if is_value else None
        """The one argument, where the input is a value rather than fields."""
        self.files: dict[str, Schema] = {}
        self.arrays = internals.arrays_of(spec)
        if self.root is None:
            self._read_fields(spec, schema, taken)
        else:
            self._read_root(self.root, schema, taken)
        self.media_type: str = output.mime_type()
        result = output.model_json_schema()
        self.returns_root = internals.is_root_model(output)
        self.streams = internals.yields(method)
        self.result = _streamed(result, method) if self.streams else result
        self.output_file = _output_file(self.result, self.media_type)
        self.output = translate_output(
            {"type": "string", "format": "binary"}
            if self.output_file is not None
            else self.result
            if self.streams
            else output.model_json_schema(mode="serialization")
        )
        is_string = self.output.get("type") == "string" and self.output_file is None
        self.quoted = is_string and not (
            self.streams or is_text(getattr(output, "__pydantic_core_schema__", None))
        )
        """True for a date, a UUID or the like, which JSON writes as a string."""
        self.pieces: str | None = None
        if self.streams:
            self.pieces = "bytes" if self.output_file is not None else _pieces(self.result)
            if self.pieces == "text":
                # Whatever they contain, and whatever their type hint says of it.
                kind = "text/event-stream" if method.is_stream else "text/plain"
                self.output = {"type": "string", "contentMediaType": kind}

    def _read_fields(self, spec: Any, schema: Mapping[str, Any], taken: Schema) -> None:
        self.input = translate_input(schema)
        self.check = taken
        properties = self.input.setdefault("properties", {})
        self.input["type"] = "object"
        for name in spec.multipart_fields:
            field = spec.model_fields[name].alias or name
            described = schema["properties"].get(field, {})
            file = file_of(described) or _path_of(spec.model_fields[name].annotation)
            if file is not None:
                self.files[field] = {"required": field in schema.get("required", ()), **file}
                properties[field] = describe_file(described, file)

    def _read_root(self, name: str, schema: Mapping[str, Any], taken: Schema) -> None:
        is_bytes = schema.get("type") == "string" and schema.get("format") == "binary"
        file = {"array": False} if is_bytes else file_of(schema)
        required = "default" not in schema
        argument = translate_input(schema)
        definitions = argument.pop("$defs", None)
        if file is not None:
            self.files[name] = {"required": required, **file}
            argument = describe_file(schema, file)
        self.input = {
            "type": "object",
            "properties": {name: argument},
            **({"required": [name]} if required else {}),
            **({"$defs": definitions} if definitions else {}),
        }
        definitions = taken.pop("$defs", None)
        root = taken if self.is_model else taken.get("properties", {}).get("root", {})
        self.check = {
            "type": "object",
            "properties": {name: root},
            "required": [name] if required else [],
            **({"$defs": definitions} if definitions else {}),
        }


def endpoint_manifest(
    method: Any, shape: Shape, config: Mapping[str, Any], *, asynchronous: bool, route: str
) -> dict[str, Json]:
    """``EndpointManifest`` of the node. ``config`` has the defaults of BentoML."""
    name = endpoint_name(method.name)
    check_endpoint(name, route)
    manifest: dict[str, Json] = {
        "name": name,
        "kind": "task" if method.is_task else "api",
        "input": shape.input,
        "check": shape.check,
        "json": "python",
        "maxJsonBytes": MAX_JSON_BYTES,
        "files": shape.files,
        "output": shape.output,
        "retentionMs": DAY_MS,
        "retries": {"max": 0, "backoffMs": SECOND_MS},
        "priority": 0,
        **_limits(method, config, asynchronous=asynchronous, streams=shape.streams),
    }
    said = _description(method.doc)
    if said:
        manifest["description"] = said
    if shape.output_file is not None:
        manifest["outputFile"] = shape.output_file
        if shape.streams and "contentType" in shape.output_file:
            # The node sends the pieces before it knows more of them.
            kind = with_charset(shape.output_file["contentType"])
            manifest["outputFile"] = {**shape.output_file, "contentType": kind}
    if shape.pieces is not None:
        manifest["stream"] = {"pieces": shape.pieces}
    if shape.arrays:
        manifest["arrays"] = list(shape.arrays)
    if shape.root is not None:
        manifest["rootArgument"] = shape.root
    if route != f"/{name}":
        manifest["route"] = route
    if shape.quoted:
        manifest["quoted"] = True
    # Of a batch, nobody could say whose request it is.
    if method.ctx_param is not None and not method.batchable:
        manifest["request"] = {"headers": ["*"]}
    if method.batchable:
        manifest["batch"] = {
            # Each call has a row at least.
            "maxSize": min(method.max_batch_size, MAX_BATCH_SIZE),
            "maxWaitMs": min(BATCH_WAIT_MS, method.max_latency_ms),
            "maxBytes": DEFAULT_MAX_BYTES,
            "onError": "split",
        }
    return manifest


def with_charset(media_type: str) -> str:
    """As Starlette says it of every text: that it is UTF-8."""
    is_untold = media_type.startswith("text/") and "charset=" not in media_type.lower()
    return f"{media_type}; charset=utf-8" if is_untold else media_type


def threads_of(config: Mapping[str, Any]) -> int:
    """How many synchronous methods of the service run at a time, in one process."""
    return max(1, min(MAX_CONCURRENCY, int(config.get("threads") or 1)))


def timeout_of(config: Mapping[str, Any]) -> float:
    """How many seconds the answer of an api may take until it begins."""
    seconds: float = (config.get("traffic") or {}).get("timeout") or DEFAULT_TIMEOUT_SECONDS
    return seconds


def concurrency_of(config: Mapping[str, Any]) -> int:
    """How many requests of a mounted application one worker takes at a time."""
    most = (config.get("traffic") or {}).get("max_concurrency")
    return max(1, min(math.ceil(most / _workers(config)) if most else DEFAULT_CONCURRENCY, 10_000))


def gpus_of(config: Mapping[str, Any]) -> float:
    """How many of ``resources={"gpu": 1}``, or which part of one: their type is advice."""
    gpus = float((config.get("resources") or {}).get("gpu") or 0)
    return max(0.01, math.floor(gpus * 100 + 1e-9) / 100) if 0 < gpus < 1 else math.ceil(gpus)


def _limits(
    method: Any, config: Mapping[str, Any], *, asynchronous: bool, streams: bool
) -> dict[str, int]:
    traffic = config.get("traffic") or {}
    timeout_ms = round(timeout_of(config) * SECOND_MS)
    if method.is_task or streams:
        # BentoML bounds the time until an answer begins, and so neither a task nor a stream.
        timeout_ms = DAY_MS
    most = traffic.get("max_concurrency")
    if method.batchable:
        # One batch at a time, as in BentoML, so that calls meet in the next one.
        concurrency = 1
    elif not asynchronous:
        # One more call of an api is there already when a turn ends, which hides a round trip to
        # the node. A task that waits for its turn in a worker could run in another one.
        concurrency = threads_of(config) + (0 if method.is_task or streams else 1)
    elif method.is_task:
        concurrency = traffic.get("concurrency") or 1
    else:
        concurrency = math.ceil(most / _workers(config)) if most else DEFAULT_CONCURRENCY
    return {
        "timeoutMs": min(timeout_ms, DAY_MS),
        "concurrency": max(1, min(concurrency, MAX_CONCURRENCY)),
        "queueLimit": min(most or DEFAULT_QUEUE_LIMIT, MAX_QUEUE_LIMIT),
    }


def _workers(config: Mapping[str, Any]) -> int:
    workers = config.get("workers") or 1
    return (os.cpu_count() or 1) if workers == "cpu_count" else int(workers)


def _description(text: str | None) -> str:
    return inspect.cleandoc(text or "")[:MAX_DESCRIPTION_CHARACTERS]


def _root_parameter(method: Any) -> str:
    parameters = list(inspect.signature(method.func).parameters.values())[1:]
    return next((each.name for each in parameters if each.kind is each.POSITIONAL_ONLY), "root")


def mentions_path(annotation: Any) -> bool:
    """True for a path, alone or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, PurePath):
        return True
    return any(mentions_path(each) for each in get_args(annotation))


def _path_of(annotation: Any) -> Schema | None:
    """The ``FileArgument`` of ``Path | None``, which BentoML describes as a text.

    As a text, it would be whatever path of this machine a caller names.
    """
    if not mentions_path(annotation):
        return None
    inner = (each for each in get_args(annotation) if mentions_path(each))
    return {"array": any(get_origin(each) is list for each in (annotation, *inner))}


def _streamed(schema: Schema, method: Any) -> Schema:
    """The schema of one piece: of an iterator with a content type, BentoML describes a list."""
    root = method.output_spec.model_fields.get("root")
    origin = None if root is None else get_origin(root.annotation)
    is_iterator = isinstance(origin, type) and issubclass(origin, (Iterator, AsyncIterator))
    return dict(schema.get("items", {})) if is_iterator else schema


def _pieces(schema: Mapping[str, Any]) -> str:
    """Strings are passed on as they are, and so is what has no type, as BentoML does."""
    return "text" if schema.get("type", "string") == "string" and "$ref" not in schema else "json"


def _output_file(schema: Mapping[str, Any], media_type: str) -> Schema | None:
    if schema.get("type") == "file":
        return {} if media_type == "application/octet-stream" else {"contentType": media_type}
    is_text = schema.get("type") == "string"
    if is_text and schema.get("format") == "binary":
        is_said = media_type not in ("text/plain", "text/event-stream")
        return {"contentType": media_type} if is_said else {}
    if is_text and media_type not in ("text/plain", "text/event-stream"):
        return {"contentType": media_type}
    return None
