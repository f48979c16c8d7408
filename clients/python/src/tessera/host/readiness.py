"""Readiness: a service that has loaded is asked whether it may take calls, until it may, and again
while it serves."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

ASK_INTERVAL_SECONDS = 1.0
"""Pause between two questions while it is not ready."""
READY_ASK_INTERVAL_SECONDS = 5.0
"""The same while it is."""
MAX_NOT_READY_CHARACTERS = 1_024


class NotReady(Exception):
    """The service cannot say whether it is ready. The message is for its author."""


class Readiness:
    """What a service says of itself.

    ``on_said`` is called with that when it changes; with an empty text when it is ready again.
    """

    def __init__(
        self,
        ready: Callable[[], Any] | None,
        on_said: Callable[[str], None],
        *,
        health: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self._ready = ready
        self._health = health
        """What keeps programs of the service from taking requests, asked first."""
        self._name = getattr(ready, "__name__", "ready")
        self._on_said = on_said
        self._last = ""

    async def reached(self) -> None:
        """Returns when it says that it is ready; the node limits how long that may take.

        Raises ``NotReady`` when it raises, or answers with anything but a bool or a text.
        """
        if self._ready is not None:
            self._say(f"{self._name} has not answered")
        while (said := await self._ask()) != "":
            self._say(said)
            await asyncio.sleep(ASK_INTERVAL_SECONDS)
        self._last = ""

    async def follow(self) -> NoReturn:
        """Asks on, for as long as the process lives. An error means that it is not ready."""
        while True:
            is_ready = self._last == ""
            await asyncio.sleep(READY_ASK_INTERVAL_SECONDS if is_ready else ASK_INTERVAL_SECONDS)
            try:
                self._say(await self._ask())
            except NotReady as error:
                self._say(str(error))

    async def _ask(self) -> str:
        """What it says; empty: that it is ready."""
        fault = "" if self._health is None else await self._health()
        if fault != "" or self._ready is None:
            return fault
        said = await self._answer(self._ready)
        if isinstance(said, (bool, str)):
            return "" if said is True else f"{self._name} said {said}"
        raise NotReady(
            f"{self._name} returned {type(said).__name__}; it returns True, or False or a text "
            "that says why it is not ready"
        )

    async def _answer(self, ready: Callable[[], Any]) -> Any:
        try:
            # What `setup` began on the event loop goes on meanwhile.
            said = ready() if inspect.iscoroutinefunction(ready) else await asyncio.to_thread(ready)
            return await said if inspect.isawaitable(said) else said
        except Exception as error:
            raise NotReady(
                f"{self._name} of the service failed: {type(error).__name__}: {error}"
            ) from error

    def _say(self, said: str) -> None:
        if said != self._last:
            self._last = said
            self._on_said(said[:MAX_NOT_READY_CHARACTERS])
