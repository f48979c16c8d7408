"""Logs a program in for a person, who confirms a code in a browser anywhere (RFC 8628).

A generator of steps (see `wire`): it asks for a code, shows it, and asks for the token until the
person has answered. Only the program has the secret that the token is given for.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass

from .errors import TesseraError
from .repeat import Policy
from .rpc import Call, unary
from .wire import Pause, Steps

DEVICE_POLL_INTERVAL_S = 5.0
"""Between two questions, where the server names no interval, as RFC 8628 says."""

DEVICE_POLL_SLOW_DOWN_S = 5.0
"""How much the interval grows when the server says that it is asked too often."""

DEVICE_LOGIN_LIMIT_S = 900.0
"""How long it waits: the server ends the code after 10 minutes; this is for one that does not."""

MAX_HOST_NAME_CHARACTERS = 64
"""Of this machine, for the name of the token."""


@dataclass(frozen=True)
class DeviceCode:
    """What a person needs to log a program in."""

    url: str
    """The page to open, in a browser on any machine."""
    user_code: str
    """The code to type there, such as `BCDF-GHJK`."""
    complete_url: str
    """The page with the code in it."""


ShowCode = Callable[[DeviceCode], object]


def show_code(code: DeviceCode) -> None:
    """Writes to standard error what to do."""
    print(
        f"Open {code.url} in any browser, sign in, and type the code {code.user_code}",
        file=sys.stderr,
        flush=True,
    )


def device_login(show: ShowCode, policy: Policy) -> Steps[str]:
    """Returns the value of the token; raises a `TesseraError` when there is none."""
    host = socket.gethostname()[:MAX_HOST_NAME_CHARACTERS]
    started = yield from unary(_call("StartDeviceLogin", host_name=host), policy)
    show(
        DeviceCode(
            url=_shown(started.get("verificationUrl")),
            user_code=_shown(started.get("userCode")),
            complete_url=_shown(started.get("verificationUrlComplete")),
        )
    )
    interval_s = _seconds(started.get("interval"))
    waited_s = 0.0
    while waited_s < DEVICE_LOGIN_LIMIT_S:
        yield Pause(interval_s)
        waited_s += interval_s
        try:
            device_code = started.get("deviceCode")
            login = yield from unary(_call("RedeemDeviceLogin", device_code=device_code), policy)
            return str(login.get("value", ""))
        except TesseraError as err:
            if err.reason == "LOGIN_SLOW_DOWN":
                interval_s += DEVICE_POLL_SLOW_DOWN_S
            elif err.reason != "LOGIN_PENDING":
                raise
    raise TesseraError("the login was given up: nobody answered in time")


def _call(method: str, **message: object) -> Call:
    return Call(f"tessera.v1.LoginService/{method}", message, harmless=False)


def _seconds(duration: object) -> float:
    """Of a duration in protobuf's JSON, such as `5s`."""
    try:
        return float(str(duration).removesuffix("s"))
    except ValueError:
        return DEVICE_POLL_INTERVAL_S


def _shown(text: object) -> str:
    """Without what a terminal would take for a command."""
    return "".join(each for each in str(text) if each.isprintable())
