"""The paths of endpoints. Each is served as it is written, or refused before anything runs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..sdk.executable import Json, ServiceError
from ..sdk.mounts import MAX_PATH_CHARACTERS, is_path

TAKEN = frozenset(
    [
        *("/livez", "/readyz", "/healthz", "/metrics", "/federate"),
        *("/schema.json", "/docs.json", "/auth/methods", "/auth/oidc/start", "/auth/oidc/callback"),
    ]
)
"""Paths that the node answers itself."""

API = frozenset(
    [
        *("auth", "console", "deployments", "endpoints", "login", "members", "monitoring"),
        *("organizations", "tasks", "tokens", "workers"),
    ]
)
"""What ``/api/v1/`` has of the node's own API."""

PAGES = frozenset(["assets", "console"])
"""Folders of the node's pages."""

VERBS = ("submit", "status", "get", "arguments", "cancel", "retry", "events", "stream")
"""What is below the path of a task."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")


def endpoint_name(method: str) -> str:
    """The name of the endpoint of a method, in letters of ASCII: ``_score`` is ``x_score``.

    Its path stays that of the method. Characters of other alphabets are ``u`` and their number.
    """
    name = "".join(each if each.isascii() else f"u{ord(each):x}" for each in method)
    return name if name[0].isalpha() else f"x{name}"


def check_endpoint(name: str, route: str) -> None:
    """Raises ``ServiceError``, in one line, for what cannot be served as it is written."""
    if not _NAME.fullmatch(name):
        raise ServiceError(
            f"endpoint {name}: the name has more than 63 characters: "
            f'rename the method, and give it route="{route}" if its path is to stay'
        )
    if "{" in route:
        raise _refused(name, route, "no method is given what {…} stands for: make it an argument")
    if not is_path(route):
        raise _refused(
            name,
            route,
            "it must begin with one slash, and have no line breaks and none of ?#{}\\, in at most "
            f"{MAX_PATH_CHARACTERS} characters: give it another route",
        )
    if _is_taken(route):
        raise _refused(name, route, "the node answers this path itself: give it another route")


def refuse_shared(endpoints: Sequence[Json]) -> None:
    """Raises ``ServiceError`` for two endpoints of which one could not be reached."""
    taken: dict[str, str] = {}
    names = [each["name"] for each in endpoints]
    for name in set(names):
        if names.count(name) > 1:
            raise ServiceError(f"endpoint {name}: two methods have this name: rename one")
    for each in endpoints:
        route = each.get("route", f"/{each['name']}")
        if route in taken:
            raise _refused(each["name"], route, f"{taken[route]} has it: give one another route")
        taken[route] = f"endpoint {each['name']}"
    for each in endpoints:
        if each["kind"] == "task":
            route = each.get("route", f"/{each['name']}").rstrip("/")
            for below in (f"{route}/{verb}" for verb in VERBS):
                if below in taken:
                    why = f"{taken[below]} has {below}, which a task needs: give one another route"
                    raise _refused(each["name"], route or "/", why)


def _is_taken(route: str) -> bool:
    first, *others = route[1:].split("/")
    return (
        route in TAKEN
        or first.startswith(("tessera.", "grpc."))
        or (first in PAGES and others != [])
        or (
            first == "api"
            and others[:1] == ["v1"]
            and others[1:2] != []
            and others[1].split(":")[0] in API
        )
    )


def _refused(name: str, route: str, why: str) -> ServiceError:
    shown = route if route.isprintable() else ascii(route)
    return ServiceError(f"endpoint {name}: the path {shown}: {why}")
