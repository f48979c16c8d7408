"""Refuses services with parts that cannot be hosted, and says why, before anything runs."""

from __future__ import annotations

from typing import Any

from ..sdk.executable import ServiceError
from . import internals

_WHY = {
    "command behind": "it is a command (cmd, __command__) with ASGI middlewares or an application "
    "at / before it, which this version of BentoML starts itself: install a newer one, or mount "
    "the application below a path",
    "runner": "it is a legacy runner (bentoml.Runner): make it a class with @bentoml.service",
    "legacy": "it is a legacy bentoml.Service with runners: make it a class with @bentoml.service",
    "multipart result": "a model that contains files cannot be a result, in BentoML neither: "
    "return the file alone",
}


def refuse_unsupported(service: Any) -> None:
    """Raises ``ServiceError`` with a line for each feature that cannot be hosted."""
    if internals.is_legacy_service(service):
        raise _refused([f"{getattr(service, 'name', 'the service')}: {_WHY['legacy']}"])
    lines = [
        f"{each.name}: {_WHY[part]}"
        for each in service.all_services().values()
        for part in internals.unsupported_parts(each)
    ]
    lines += [
        f"{service.name}.{method.name}: {_WHY['multipart result']}"
        for method in service.apis.values()
        if method.output_spec.multipart_fields and not internals.is_root_model(method.output_spec)
    ]
    if lines:
        raise _refused(lines)


def refuse_version() -> None:
    """Raises ``ServiceError`` for a version of BentoML that is too old."""
    version = internals.installed_version()
    if internals.is_too_old(version):
        oldest = ".".join(str(each) for each in internals.OLDEST)
        raise ServiceError(f"BentoML {version} is too old: install {oldest} or newer")


def _refused(lines: list[str]) -> ServiceError:
    return ServiceError("UNSUPPORTED_FEATURE: " + "\n".join(lines))
