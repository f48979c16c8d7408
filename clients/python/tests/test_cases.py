"""The cases that every client of ours passes: `test/e2e/clients/cases.json`."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

import tessera
from conftest import MakeClient
from servers import ROOT, Server

TABLE = json.loads((ROOT / "test" / "e2e" / "clients" / "cases.json").read_text("utf-8"))


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_case(case: Any, make: MakeClient, server: Server) -> None:
    client = make(server.url, token=case.get("token", TABLE["token"]))
    task = None
    for step in case["steps"]:
        if "task" in step:
            task = client.task(*step["task"])
            continue
        if "raises" in step:
            kind = getattr(tessera, step["raises"]["kind"])
            with pytest.raises(kind) as caught:
                perform(step, client, task)
            assert type(caught.value) is kind
            check_error(caught.value, step["raises"])
            continue
        outcome = perform(step, client, task)
        if "submit" in step or "retry" in step:
            assert task is None or outcome.id != task.id
            task = outcome
        check_outcome(outcome, step)


def perform(step: Any, client: Any, task: Any) -> Any:
    """What one step does, and what comes of it."""
    name = step.get("call") or step.get("submit")
    if name is not None:
        endpoint = client.endpoint(name).with_options(**step.get("options", {}))
        arguments = {key: argument(value) for key, value in step["arguments"].items()}
        return endpoint(**arguments) if "call" in step else endpoint.submit(**arguments)
    if "status" in step:
        return task.get_status().value
    if "until" in step:
        return until(task, step["until"])
    if "wait" in step:
        seen: list[tessera.TaskStatus] = []
        result = task.wait(timeout=30, on_progress=seen.append if "progress" in step else None)
        if "progress" in step:
            assert seen[-1].is_final
            assert tessera.Progress(**step["progress"]) in [each.progress for each in seen]
        return result
    if "update" in step:
        change = dict(step["update"])
        starts_now = {"run_at": None} if change.pop("start_now", False) else {}
        return task.update(**change, **starts_now)
    if "delete" in step:
        return task.delete(abort=step.get("abort", False))
    if "cancel" in step:
        return task.cancel(abort=step.get("abort", False))
    return task.get() if "get" in step else task.retry()


def until(task: Any, value: str) -> None:
    """Waits for a state, by the reports of `wait`."""

    class Reached(Exception):
        pass

    def look(status: tessera.TaskStatus) -> None:
        if status.value == value:
            raise Reached

    with pytest.raises(Reached):
        task.wait(timeout=30, on_progress=look)


def argument(value: Any) -> Any:
    if isinstance(value, list):
        return [argument(each) for each in value]
    if isinstance(value, dict) and "$file" in value:
        file = value["$file"]
        content = file["text"].encode()
        return tessera.Upload(content, name=file["name"], content_type=file["type"])
    if isinstance(value, dict) and "$bytes" in value:
        return value["$bytes"].encode()
    return value


def check_outcome(outcome: Any, step: Any) -> None:
    if "gives" in step:
        assert outcome == step["gives"]
    if "gives_like" in step:
        assert like(outcome, step["gives_like"])
    if "gives_file" in step:
        expected = step["gives_file"]
        assert (outcome.name, outcome.content_type) == (expected["name"], expected["type"])
        assert outcome.read() == base64.b64decode(expected["base64"])


def like(value: Any, expected: Any) -> bool:
    """Objects may have more than what is expected of them."""
    if isinstance(expected, dict):
        return all(like(value.get(key), each) for key, each in expected.items())
    return bool(value == expected)


def check_error(error: tessera.TesseraError, expected: Any) -> None:
    if "fields" in expected:
        assert sorted(each.field for each in error.violations) == sorted(expected["fields"])
    for name in ("code", "reason"):
        if name in expected:
            assert getattr(error, name) == expected[name]
    assert expected.get("message", "") in error.message
    assert error.message
