"""Answers of a real ``bentoml serve``, and of ``tessera serve``."""

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

UNFINISHED = ("in_progress", "pending", "queued", "running")
"""Words of BentoML, and of Tessera, for a task that has not ended."""


@contextmanager
def bentoml_serve(target: str, home: Path) -> Iterator[httpx.Client]:
    """Serves a service of this folder by BentoML, on loopback; yields a client of it."""
    port = _free_port()
    command = [sys.executable, "-m", "bentoml", "serve", target]
    with _served([*command, "--host", "127.0.0.1", "--port", port], port, home) as client:
        yield client


@contextmanager
def tessera_serve(target: str, home: Path) -> Iterator[httpx.Client]:
    """The same by the command in ``TESSERA_COMMAND``."""
    port = _free_port()
    command = [*os.environ["TESSERA_COMMAND"].split(), "serve", target, "--python", sys.executable]
    for name in ("PYTHONPATH", "PYTHONPYCACHEPREFIX", "COMMANDED_PORT"):
        if name in os.environ:
            command += ["--env", f"{name}={os.environ[name]}"]
    with _served([*command, "--host", "127.0.0.1", "--port", port], port, home) as client:
        yield client


def _free_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return str(free.getsockname()[1])


@contextmanager
def _served(command: list[str], port: str, home: Path) -> Iterator[httpx.Client]:
    log = home / "serve.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command,
            cwd=Path(__file__).parent,
            env={**os.environ, "BENTOML_HOME": str(home), "BENTOML_DO_NOT_TRACK": "True"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
            _wait_until_ready(client, process, log)
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
    while client.get(f"{path}/status", params=task).json()["status"] in UNFINISHED:
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
    raise AssertionError(f"it did not start:\n{log.read_text(errors='replace')}")
