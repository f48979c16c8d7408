from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from serving import bentoml_serve

FOLDER = Path(__file__).parent

try:
    import bentoml
except ImportError:
    # The client's own tests run without it.
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """BentoML writes folders into its home when it is imported."""
    return tmp_path_factory.mktemp("bentoml")


class Hosted:
    """An adapted service that is set up, with the event loop that it runs on."""

    def __init__(self, service: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.service = service
        self.run: Callable[[Awaitable[Any]], Any] = loop.run_until_complete


@pytest.fixture(scope="session")
def host(home: Path) -> Iterator[Callable[[Any], Hosted]]:
    """Adapts services and sets them up."""
    from tessera.bentoml.adapter import adapt

    sys.path.insert(0, str(FOLDER))
    loop = asyncio.new_event_loop()
    made: list[Any] = []

    def start(service: Any) -> Hosted:
        made.append(adapt(service))
        loop.run_until_complete(made[-1].setup())
        return Hosted(made[-1], loop)

    yield start
    for each in made:
        loop.run_until_complete(each.teardown())
    loop.close()


@pytest.fixture(scope="session")
def eight(host: Callable[[Any], Hosted]) -> Hosted:
    """The service of ``eight.py``."""
    from eight import Eight

    return host(Eight)


@pytest.fixture(scope="session")
def roots(host: Callable[[Any], Hosted]) -> Hosted:
    """The service of ``roots.py``."""
    if bentoml.__version__.startswith("1.3."):
        pytest.skip("BentoML has parameters before / from 1.4")
    from roots import Roots

    return host(Roots)


@pytest.fixture(scope="session")
def served_eight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """``eight.py`` under ``bentoml serve``."""
    with bentoml_serve("eight:Eight", tmp_path_factory.mktemp("served")) as client:
        yield client


@pytest.fixture(scope="session")
def served_routed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """``routed.py`` under ``bentoml serve``."""
    with bentoml_serve("routed:Routed", tmp_path_factory.mktemp("served")) as client:
        yield client


@pytest.fixture(scope="session")
def served_roots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """``roots.py`` under ``bentoml serve``."""
    with bentoml_serve("roots:Roots", tmp_path_factory.mktemp("served")) as client:
        yield client


os.environ.setdefault("BENTOML_DO_NOT_TRACK", "True")
