"""What a service counts by itself has the names and values that it has under ``bentoml serve``."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import httpx
import pytest

from serving import bentoml_serve, tessera_serve

pytestmark = pytest.mark.skipif(
    "TESSERA_COMMAND" not in os.environ, reason="TESSERA_COMMAND names no server"
)

SAMPLE = re.compile(r"^((?:words|left|score|took)\w*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
OURS = {"deployment", "node", "organization"}
NOT_ADDED_UP = re.compile(r"_created$")
"""When a series was made means nothing for several workers."""

EXPECTED = {
    ("words_total", 'lang="de"'): 5.0,
    ("left", ""): 2.0,
    ("score_bucket", 'endpoint="read",le="0.5"'): 1.0,
    ("score_bucket", 'endpoint="read",le="1.0"'): 2.0,
    ("score_bucket", 'endpoint="read",le="+Inf"'): 2.0,
    ("score_sum", 'endpoint="read"'): 1.25,
    ("score_count", 'endpoint="read"'): 2.0,
    ("took_seconds_sum", ""): 1.0,
    ("took_seconds_count", ""): 2.0,
}


def test_own_metrics_are_those_of_bentoml(tmp_path: Path) -> None:
    pages = []
    for number, serve in enumerate((bentoml_serve, tessera_serve)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with serve("counted.py:Counted", folder) as client:
            for text in ("a b c", "d e"):
                assert client.post("/read", json={"text": text}).status_code == 200
            pages.append(counted(client))
    theirs, ours = pages
    # BentoML has no word of how gauges of its processes are combined, and tells them apart.
    left = [value for (name, _), value in theirs.items() if name == "left"]
    assert 2.0 in left
    theirs = {key: value for key, value in theirs.items() if key[0] != "left"}
    assert {**theirs, ("left", ""): 2.0} == EXPECTED
    # A summary is a histogram without buckets.
    assert ours.pop(("took_seconds_bucket", 'le="+Inf"')) == 2.0
    assert ours == EXPECTED


def counted(client: httpx.Client) -> dict[tuple[str, str], float]:
    """The service's own samples, without the labels of the platform, once they are there."""
    deadline = time.monotonic() + 20
    while True:
        found = {
            (name, labels_of(labels)): float(value)
            for name, labels, value in SAMPLE.findall(client.get("/metrics").text)
            if not NOT_ADDED_UP.search(name)
        }
        if found.get(("took_seconds_count", "")) == 2.0 or time.monotonic() > deadline:
            return found
        time.sleep(0.2)


def labels_of(text: str) -> str:
    pairs = [pair for pair in text.split(",") if pair and pair.split("=")[0] not in OURS]
    # Both write the same number, one of them with its point.
    return ",".join(sorted(re.sub(r'le="(\d+)"', r'le="\1.0"', pair) for pair in pairs))
