"""The async client in its own surroundings: event loops, many calls at a time, cancelling."""

from __future__ import annotations

import anyio
import pytest

from servers import TOKEN, Server
from tessera import AsyncHTTPClient, TaskStatus

BACKENDS = ["asyncio", "trio"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_many_calls_at_a_time_in_either_event_loop(backend: str, server: Server) -> None:
    results: dict[int, object] = {}

    async def one(client: AsyncHTTPClient, number: int) -> None:
        task = await client.add.submit(numbers=[number, 1])
        results[number] = await task.wait(timeout=60)

    async def main() -> None:
        async with AsyncHTTPClient(server.url, token=TOKEN) as client:
            await client.wait_ready()
            async with anyio.create_task_group() as group:
                for number in range(50):
                    group.start_soon(one, client, number)
            assert (await client.measure(document=b"abc"))["document"]["bytes"] == 3

    anyio.run(main, backend=backend)
    assert results == {number: number + 1 for number in range(50)}


@pytest.mark.parametrize("backend", BACKENDS)
def test_giving_up_leaves_the_client_and_the_task_as_they_were(
    backend: str, server: Server
) -> None:
    async def main() -> None:
        async with AsyncHTTPClient(server.url, token=TOKEN) as client:
            task = await client.hold.submit()
            seen: list[str] = []

            async def look(status: TaskStatus) -> None:
                await anyio.sleep(0)
                seen.append(status.value)

            with anyio.move_on_after(0.3) as scope:
                await task.wait(on_progress=look)
            assert scope.cancelled_caught
            assert seen
            assert not (await task.get_status()).is_final
            await task.cancel(abort=True)
            assert (await task.get_status()).value == "cancelled"

    anyio.run(main, backend=backend)
