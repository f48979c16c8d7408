"""What a program does with BentoML's own client: `python bentoml_program.py sync|async URL TOKEN`.

Prints one JSON object: by the name of each step, `{"gives": …}` or `{"raises": …}`.
"""

import asyncio
import contextlib
import inspect
import json
import sys
import tempfile
from pathlib import Path

import bentoml
from _bentoml_impl.client import task as client_task

KIND, URL, TOKEN = sys.argv[1:]
CLIENT = bentoml.SyncHTTPClient if KIND == "sync" else bentoml.AsyncHTTPClient
TASK = client_task.Task if KIND == "sync" else client_task.AsyncTask
UNKNOWN = "01890000-0000-7000-8000-000000000000"


async def done(outcome):
    return await outcome if inspect.isawaitable(outcome) else outcome


@contextlib.asynccontextmanager
async def opened(token):
    if KIND == "sync":
        with CLIENT(URL, token=token) as client:
            yield client
    else:
        async with CLIENT(URL, token=token) as client:
            yield client


def said(err):
    """The server's message, which these clients show as the JSON that it came in."""
    try:
        return json.loads(str(err))["message"]
    except ValueError:
        return str(err)


class Steps:
    """Performs the steps on one client, and writes down what came of each."""

    def __init__(self, client, seen):
        self.client = client
        self.seen = seen

    async def do(self, name, act):
        try:
            outcome = await done(act())
            self.seen[name] = {"gives": getattr(outcome, "value", outcome)}
            return outcome
        except Exception as err:
            code = getattr(err, "error_code", None)
            self.seen[name] = {
                "raises": type(err).__name__,
                "status": None if code is None else int(code),
                "message": said(err),
            }
            return None

    async def submit(self, endpoint, **arguments):
        """Submits; a client whose submit fails on its way back finds the task in the list."""
        before = await self.task_ids(endpoint)
        name = f"submit {endpoint}"

        async def act():
            task = await done(getattr(self.client, endpoint).submit(**arguments))
            return task.id

        await self.do(name, act)
        new = [each for each in await self.task_ids(endpoint) if each not in before]
        assert len(new) == 1, f"{name} left {len(new)} tasks"
        if "gives" in self.seen[name]:
            self.seen[name]["gives"] = self.seen[name]["gives"] == new[0]
        return self.task(endpoint, new[0])

    def task(self, endpoint, task_id):
        return TASK(task_id, self.client.endpoints[endpoint], self.client)

    async def task_ids(self, endpoint):
        query = {"endpoint": endpoint, "page_size": "500"}
        answer = await done(self.client.request("GET", "/api/v1/tasks", params=query))
        return [each["task_id"] for each in answer.json().get("tasks", [])]

    async def ended(self, task):
        """Waits for the end, for which these clients have no words."""
        query = {"task_id": task.id, "wait": "30"}
        await done(self.client.request("GET", f"{task.endpoint.route}/get", params=query))
        return task

    async def running(self, task):
        """Waits until a worker has the task and has told its progress."""
        query = {"task_id": task.id}
        path = f"{task.endpoint.route}/status"
        while True:
            answer = await done(self.client.request("GET", path, params=query))
            if answer.json()["progress"]:
                return task
            query["wait"] = "1"

    async def abort(self, task):
        query = {"task_id": task.id, "abort": "true"}
        await done(self.client.request("PUT", f"{task.endpoint.route}/cancel", params=query))


async def perform(steps, folder):
    client, do = steps.client, steps.do
    document = folder / "in.txt"
    document.write_text("abc")
    await do("endpoints", lambda: sorted(client.endpoints))
    await do("call", lambda: client.greet(name="Ada", times=2))
    await do("JSON", lambda: client.echo(value={"a": [1, None, "ä"]}))
    await do("bad arguments", lambda: client.greet(name=""))
    await do("failing call", lambda: client.fail(code="not_found"))
    await do("file in", lambda: client.measure(document=document, title="5", tags=["a"]))
    await do("files in", lambda: client.measure(document=document, others=[document, document]))
    await do("file out", lambda: read(client.paint(name="a.png")))

    task = await steps.ended(await steps.submit("add", numbers=[1, 2]))
    await do("status of a success", task.get_status)
    await do("get", task.get)
    await do("get again", task.get)
    await do("cancel of a success", task.cancel)
    task = await steps.ended(await steps.submit("measure_later", document=document))
    await do("get of a task with a file", task.get)
    task = await steps.ended(await steps.submit("paint_later", name="b.png"))
    await do("get of a file", lambda: read(task.get()))

    task = await steps.running(await steps.submit("hold"))
    await do("status while running", task.get_status)
    await do("get while running", task.get)
    await do("cancel while running", task.cancel)
    waiting = await steps.submit("hold")
    await do("status while waiting", waiting.get_status)
    await do("cancel while waiting", waiting.cancel)
    await do("status of a cancelled task", waiting.get_status)
    await do("get of a cancelled task", waiting.get)
    await steps.abort(task)

    task = await steps.ended(await steps.submit("fail_later", code="error", message="no luck"))
    await do("status of a failure", task.get_status)
    await do("get of a failure", task.get)
    again = await done(task.retry())
    await do("retry is a new task", lambda: again.id != task.id)
    await steps.ended(again)
    await do("get of the retry", again.get)
    unknown = steps.task("add", UNKNOWN)
    for name in ("get_status", "get", "cancel", "retry"):
        await do(f"{name} of an unknown task", getattr(unknown, name))


async def read(outcome):
    path = await done(outcome)
    return path.read_bytes().hex()


async def main():
    seen = {"version": {"gives": bentoml.__version__}}
    with tempfile.TemporaryDirectory() as folder:
        async with opened(TOKEN) as client:
            await perform(Steps(client, seen), Path(folder))
    for name, token in (("wrong token", "a-wrong-token"), ("no token", None)):
        steps = Steps(None, seen)

        async def act(token=token):
            async with opened(token):
                pass

        await steps.do(name, act)
    print(json.dumps(seen))


asyncio.run(main())
