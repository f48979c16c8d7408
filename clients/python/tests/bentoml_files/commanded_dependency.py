"""A service that asks a command, which is a service that it depends on."""

from __future__ import annotations

import os

import bentoml
import httpx

from commanded import Commanded


@bentoml.service
class Asking:
    """Asks it at its port, and by the clients that BentoML has for such a service."""

    program = bentoml.depends(Commanded)

    @bentoml.api
    async def ask(self, path: str) -> str:
        """What the command answers."""
        assert self.program is not None
        async with httpx.AsyncClient() as client:
            response = await client.get(f"http://127.0.0.1:{os.environ['COMMANDED_PORT']}{path}")
        return f"{response.status_code} {response.headers['x-own']} {response.text}"

    @bentoml.api
    async def ask_by_client(self, path: str) -> str:
        """The same."""
        response = await self.program.to_async.client.get(path)
        return f"{response.status_code} {self.program.client_url} {response.text}"

    @bentoml.api
    def ask_in_thread(self, path: str) -> str:
        """The same, in a thread."""
        response = self.program.to_sync.client.post(path, content=b"a body")
        return f"{response.status_code} {response.text}"
