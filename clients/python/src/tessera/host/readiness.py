"""Readiness: a service that has loaded is asked whether it may take calls, until it may."""

from __future__ import annotations

import asyncio
import inspect
import traceback
from collections.abc import Callable
from typing import Any

ASK_INTERVAL_SECONDS = 1.0
"""Pause between two questions."""
MAX_NOT_READY_CHARACTERS = 1_024


class NotReady(Exception):
    """The service cannot say whether it is ready. The message is for its author."""


async def until_ready(ready: Callable[[], Any] | None, on_said: Callable[[str], None]) -> None:
    """Returns when the service says that it is ready; the node limits how long that may take.

    ``on_said`` is called with what it says before, when that changes. Raises ``NotReady`` when it
    raises, or answers with anything but a bool or a text.
    """
    if ready is None:
        return
    name, last = getattr(ready, "__name__", "ready"), ""

    def say(said: str) -> None:
        nonlocal last
        if said != last:
            last = said
            on_said(said[:MAX_NOT_READY_CHARACTERS])

    say(f"{name} has not answered")
    while True:
        said = await _answer_of(ready, name)
        if said is True:
            return
        if not isinstance(said, (bool, str)):
            raise NotReady(
                f"{name} returned {type(said).__name__}; it returns True, or False or a text that "
                "says why it is not ready"
            )
        say(f"{name} said {said}")
        await asyncio.sleep(ASK_INTERVAL_SECONDS)


async def _answer_of(ready: Callable[[], Any], name: str) -> Any:
    try:
        # What `setup` began on the event loop goes on meanwhile.
        said = ready() if inspect.iscoroutinefunction(ready) else await asyncio.to_thread(ready)
        return await said if inspect.isawaitable(said) else said
    except Exception as error:
        traceback.print_exception(error)
        raise NotReady(f"{name} of the service failed: {type(error).__name__}: {error}") from error
