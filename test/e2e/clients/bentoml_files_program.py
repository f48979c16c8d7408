"""Calls a hosted BentoML service by both of BentoML's own clients: `python … URL`.

Prints one JSON object: by the kind of the client and the name of each step, what it gave.
"""

import asyncio
import contextlib
import inspect
import json
import sys
import tempfile
from pathlib import Path

import bentoml
import numpy as np
import pandas as pd
from PIL import Image

(URL,) = sys.argv[1:]


async def done(outcome):
    return await outcome if inspect.isawaitable(outcome) else outcome


@contextlib.asynccontextmanager
async def opened(kind):
    if kind == "sync":
        with bentoml.SyncHTTPClient(URL) as client:
            yield client
    else:
        async with bentoml.AsyncHTTPClient(URL) as client:
            yield client


async def pieces(kind, stream):
    """All of a stream: where it is cut is up to the network."""
    if kind == "sync":
        return "".join(stream)
    return "".join([each async for each in stream])


async def result(client, task):
    """The result of a task, for whose end these clients have no words."""
    query = {"task_id": task.id, "wait": "30"}
    await done(client.request("GET", f"{task.endpoint.route}/get", params=query))
    status = await done(task.get_status())
    assert status.value in ("success", "completed"), status
    return await done(task.get())


async def submitted(client, items):
    try:
        task = await done(client.count.submit(items=items))
    except AttributeError as err:
        return str(err)
    assert await result(client, task) == await result(client, await done(task.retry()))
    return await result(client, task)


async def perform(kind, client, folder):
    document, picture = folder / "in.txt", folder / "in.png"
    document.write_text("abc")
    Image.new("RGB", (4, 4)).save(picture)
    rows = pd.DataFrame([{"price": 1.5, "count": 2}])
    table = await done(client.table(rows=rows))
    array = await done(client.array(numbers=np.array([[1, 2], [3, 4]])))
    image = await done(client.image(picture=Image.open(picture), size=3))
    path = await done(client.path(document=document))
    return {
        "text": await done(client.text(name="Ada", times=2)),
        "model": await done(client.model(person={"name": "Ada"})),
        "image": [image.format, *image.size],
        "path": path.read_text(),
        "array": [type(array).__name__, array.tolist()],
        "table": [type(table).__name__, table.to_dict("records")],
        "tokens": await pieces(kind, client.tokens(prompt="to be or not")),
        "depends": await done(client.depends(text="hello world")),
        "route": await done(client.pairs(kwargs={"a": 1})),
        "count": await submitted(client, [1, 2, 3]),
    }


async def main(kind):
    with tempfile.TemporaryDirectory() as folder:
        async with opened(kind) as client:
            return await perform(kind, client, Path(folder))


print(json.dumps({kind: asyncio.run(main(kind)) for kind in ("sync", "async")}))
