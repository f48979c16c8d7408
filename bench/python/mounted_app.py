"""A hello of FastAPI, for uvicorn by itself and as a mounted server."""

from fastapi import FastAPI

from tessera import mount, service

app = FastAPI()


@app.post("/hello")
async def hello() -> dict[str, str]:
    return {"hello": "world"}


@service
class Mounted:
    server = mount("/", app)
