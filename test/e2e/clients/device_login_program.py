"""Logs in by a code, first with threads and then on an event loop; writes what came of it."""

import asyncio
import sys

from tessera import AsyncPlatformClient, SyncPlatformClient, TesseraError
from tessera.platform import DeviceCode

URL = sys.argv[1]


def show(code: DeviceCode) -> None:
    print(code.user_code, code.url, code.complete_url, flush=True)


def with_threads() -> None:
    with SyncPlatformClient.log_in(URL, show=show) as platform:
        principal = platform.auth.get_current_principal()
        print(principal.email, principal.kind.name, (platform.token or "")[:5], flush=True)


async def on_a_loop() -> None:
    try:
        await AsyncPlatformClient.log_in(URL, show=show)
    except TesseraError as err:
        print(err.reason, flush=True)


with_threads()
asyncio.run(on_a_loop())
