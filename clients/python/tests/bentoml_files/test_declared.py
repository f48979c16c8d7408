"""What a service declares holds under ``tessera serve`` as it does under ``bentoml serve``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from serving import bentoml_serve, tessera_serve

pytestmark = pytest.mark.skipif(
    "TESSERA_COMMAND" not in os.environ, reason="TESSERA_COMMAND names no server"
)

CALLS = 12


@pytest.fixture(scope="module", params=["bentoml", "tessera"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx.Client]:
    serve, target = {
        "bentoml": (bentoml_serve, "declares:Declares"),
        "tessera": (tessera_serve, "declares.py:Declares"),
    }[request.param]
    with serve(target, tmp_path_factory.mktemp("declares")) as client:
        yield client


def test_keeps_what_all_calls_brought_in_one_process(served: httpx.Client) -> None:
    def keep(number: int) -> int:
        return int(served.post("/keep", json={"text": f"t{number}"}).text)

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(keep, range(CALLS))) == list(range(1, CALLS + 1))
