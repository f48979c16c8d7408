"""Answers of a real ``bentoml serve``, to compare with."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from cases import Case

START_SECONDS = 90


@contextmanager
def bentoml_serve(target: str, home: Path) -> Iterator[httpx.Client]:
    """Serves a service of this folder, on loopback; yields a client of it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bentoml", "serve", target]
    options = ["--host", "127.0.0.1", "--port", str(port)]
    with open(home / "serve.log", "wb") as log:
        process = subprocess.Popen(
            [*command, *options],
            cwd=Path(__file__).parent,
            env={**os.environ, "BENTOML_HOME": str(home), "BENTOML_DO_NOT_TRACK": "True"},
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            _wait_until_ready(client, process, home / "serve.log")
            yield client
    finally:
        process.terminate()
        process.wait(30)


def ask(client: httpx.Client, case: Case) -> httpx.Response:
    """Sends a call as programs without a client do."""
    path = case.route or f"/{case.endpoint}"
    if case.is_task:
        task = client.post(f"{path}/submit", json=case.json).json()
        return _result(client, path, {"task_id": task["task_id"]})
    if case.raw is not None:
        content_type, content = case.raw
        return client.post(path, content=content, headers={"content-type": content_type})
    if case.files:
        data = {name: json.dumps(value) for name, value in (case.json or {}).items()}
        return client.post(path, data=data, files=list(case.files))
    return client.post(path, json=case.json)


def _result(client: httpx.Client, path: str, task: dict[str, str]) -> httpx.Response:
    """Asks again until the task has ended, for which BentoML has no other way."""
    deadline = time.monotonic() + 30
    while client.get(f"{path}/status", params=task).json()["status"] in ("in_progress", "pending"):
        assert time.monotonic() < deadline, "the task did not end"
        time.sleep(0.05)
    return client.get(f"{path}/get", params=task)


def _wait_until_ready(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if client.get("/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.2)
    raise AssertionError(f"bentoml serve did not start:\n{log.read_text(errors='replace')}")
