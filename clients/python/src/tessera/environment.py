"""The platform's credentials from the environment, by the same rules as the command line's."""

from __future__ import annotations

import os
import re
from typing import NamedTuple
from urllib.parse import urlsplit

KEY = "SERVICE_CLOUD_API_KEY"
ENDPOINT = "SERVICE_CLOUD_API_ENDPOINT"


class Target(NamedTuple):
    """Where a client calls, and the token it sends; none without a token."""

    url: str
    token: str | None


def resolve(url: str | None, token: str | None, deployment: str | None) -> Target:
    """Fills in what the caller left out; raises `ValueError` for half a login, or none.

    The key is only sent to the platform it is for, and to the hosts below it.
    """
    if url is not None and token is not None:
        return Target(check_url(url), token or None)
    login = _login()
    if url is not None:
        url = check_url(url)
        ours = login is not None and _is_below(url, login.url)
        return Target(url, login.token if login and ours else None)
    if login is None:
        raise ValueError(
            "it is not said where to call: give the URL of a deployment, "
            f"or set {ENDPOINT} and {KEY} and give deployment='organization/name'"
        )
    if deployment is None:
        raise ValueError(f"{ENDPOINT} is a platform: give deployment='organization/name' as well")
    return Target(login.url, login.token if token is None else token or None)


def resolve_platform(url: str | None, token: str | None) -> Target:
    """The same for a client of the platform itself."""
    if url is not None:
        return resolve(url, token, None)
    login = _login()
    if login is None:
        raise ValueError(
            f"it is not said where to call: give the URL of a platform, or set {ENDPOINT} and {KEY}"
        )
    return Target(login.url, login.token if token is None else token or None)


def check_url(url: str) -> str:
    """The URL without a slash at its end; raises `ValueError`."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ValueError(
            f"{url!r} is no URL of a deployment: give one such as http://localhost:3000"
        )
    return url.rstrip("/")


def _login() -> Target | None:
    key = os.environ.get(KEY, "").strip()
    endpoint = os.environ.get(ENDPOINT, "").strip()
    if not key and not endpoint:
        return None
    if not key or not endpoint:
        present, missing = (ENDPOINT, KEY) if endpoint else (KEY, ENDPOINT)
        raise ValueError(f"{present} is set, but {missing} is not: set both, or neither")
    if re.fullmatch(r"[!-~]{1,1024}", key) is None:
        raise ValueError(
            f"{KEY} is not a token: tokens begin with tsrp_ or tsro_ and have no spaces in them"
        )
    return Target(_parse_endpoint(endpoint), key)


def _parse_endpoint(text: str) -> str:
    """The URL of a platform; a bare host is taken for HTTPS, and this machine for HTTP."""
    if re.match(r"[a-z][a-z0-9+.-]*://", text, re.IGNORECASE) is None:
        local = re.match(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?(?:/|$)", text, re.IGNORECASE)
        text = f"{'http' if local else 'https'}://{text}"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{ENDPOINT} is not a URL such as https://tessera.example.com")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError(
            f"{ENDPOINT} must be a plain URL such as https://tessera.example.com: "
            "without a name, a password or anything after ? or #"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _is_below(url: str, endpoint: str) -> bool:
    """Whether a URL is on the platform's host or below it, on the same scheme and port."""
    of, platform = urlsplit(url), urlsplit(endpoint)
    if (of.scheme, of.port or _PORTS[of.scheme]) != (
        platform.scheme,
        platform.port or _PORTS[platform.scheme],
    ):
        return False
    host, above = of.hostname or "", platform.hostname or ""
    return host == above or host.endswith(f".{above}")


_PORTS = {"http": 80, "https": 443}
