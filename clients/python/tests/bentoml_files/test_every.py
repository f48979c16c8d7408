"""``tessera serve`` answers as ``bentoml serve`` does, but for what the documentation says.

A service with endpoints of every type is served by both, and both are asked the same. Whatever
differs is declared as a row of the table in ``docs/coming-from-bentoml.md``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from every import of_answers, of_files, of_http, of_models, of_results, of_roots, of_values
from every.compared import ask, differences
from every.requests import OLD, Request, counted
from every.rows import IS_OLD, RULES, documented
from serving import bentoml_serve, tessera_serve

pytestmark = pytest.mark.skipif(
    "TESSERA_COMMAND" not in os.environ, reason="TESSERA_COMMAND names no server"
)

TARGET = "every.service:Every"
PARTS = (of_values, of_models, of_files, of_answers, of_results, of_roots, of_http)
REQUESTS = dict(
    counted([each for part in PARTS for each in part.REQUESTS if not (IS_OLD and each.since)])
)

asked: dict[str, set[str]] = {}
"""The rows that the answers to a request have used."""


@pytest.fixture(scope="module")
def servers(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Ours and theirs, started at the same time."""
    with ExitStack() as stack, ThreadPoolExecutor() as starting:
        started = [
            starting.submit(stack.enter_context, serve(TARGET, tmp_path_factory.mktemp("every")))
            for serve in (tessera_serve, bentoml_serve)
        ]
        yield started[0].result(), started[1].result()


@pytest.mark.parametrize("title", REQUESTS)
def test_answers_what_bentoml_serve_answers(
    title: str, servers: tuple[httpx.Client, httpx.Client]
) -> None:
    request = REQUESTS[title]
    ours, theirs = servers
    found = differences(ask(ours, request), ask(theirs, request))
    used = asked[title] = set()
    for name, (our, their) in list(found.items()):
        rule = next(
            (r for r in RULES if name in r.differences and r.covers(request, our, their)), None
        )
        if rule is not None:
            used.add(rule.row)
            del found[name]
    row = _row(request)
    if found and row:
        used.add(row)
        return
    assert found == {}, "what differs has a row in docs/coming-from-bentoml.md, or is mended"
    assert row == "", "nothing differs: it needs no row"


def test_declares_rows_of_the_table_alone_and_all_of_them() -> None:
    if len(asked) < len(REQUESTS):
        pytest.skip("not all requests were asked")
    used = set().union(*asked.values())
    declared = {each.row for each in RULES} | {_row(each) for each in REQUESTS.values()} - {""}
    assert used == declared, "a row that is declared has to be in use"
    assert declared <= set(documented())
    if not IS_OLD:
        assert declared | {OLD} == set(documented())


def test_asks_endpoints_of_every_type() -> None:
    from every.service import Every

    paths = {each.path.partition("?")[0] for each in REQUESTS.values()}
    unasked = [each.name for each in Every.apis.values() if each.route not in paths]
    assert unasked == []
    assert len(Every.apis) >= 80
    assert len(REQUESTS) >= 250


def _row(request: Request) -> str:
    return request.old_row if IS_OLD and request.old_row is not None else request.row
