"""What a Python client lives through on a platform; platform.test.ts leads, line by line.

Each line on the input is a step with what it needs; each line on the output, after a first
one when it can begin, says what came of it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from anyio.from_thread import start_blocking_portal
from blocking import Blocking

from tessera import AsyncHTTPClient, SyncHTTPClient, TesseraError


def outcome(act: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"gives": act()}
    except TesseraError as err:
        return {"raises": type(err).__name__, "reason": err.reason, "message": err.message}


def starting(make: Callable[..., Any], token: str) -> Any:
    """Before the deployment is ready, with and without patience."""
    impatient = outcome(lambda: make(token=token, retries=0).say(text="a"))
    client = make(token=token)
    client.wait_ready(timeout=60)
    return [impatient, outcome(lambda: client.say(text="a"))]


def expiring(make: Callable[..., Any], token: str, next_token: str) -> Any:
    """The first token expires after the submit."""
    client = make(token=token)
    task = client.work.submit(text="b")
    while "raises" not in (refused := outcome(lambda: task.get_status().value)):
        pass
    refusals = [refused, outcome(task.get), outcome(lambda: task.wait(timeout=5))]
    client.token = next_token
    return [*refusals, outcome(lambda: task.wait(timeout=60))]


def main() -> None:
    kind, url, deployment = sys.argv[1:]

    with start_blocking_portal() as portal:

        def make(**options: Any) -> Any:
            if kind == "sync":
                return SyncHTTPClient(url, deployment=deployment, **options)
            return Blocking(AsyncHTTPClient(url, deployment=deployment, **options), portal)

        client: Any = None
        print("begun", flush=True)
        for line in sys.stdin:
            step = json.loads(line)
            act = step.pop("step")
            if act == "starting":
                said = starting(make, **step)
            elif act == "expiring":
                said = expiring(make, **step)
            else:
                client = client or make(token=step["token"])
                said = [outcome(lambda: client.say(**{step["argument"]: "c"}))]
            print(json.dumps(said), flush=True)


main()
