"""Files: in every form that Python has them, never whole in memory."""

from __future__ import annotations

import gc
import hashlib
import io
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from conftest import MakeClient
from servers import ROOT, TOKEN, Server
from tessera import BadArguments, ConnectionBroken, RequestTooLarge, ResultFile, Upload

CONTENT = b"some bytes\r\n--not a boundary\r\n" * 1000


def test_a_path_a_name_bytes_and_a_file_object_are_files(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "grün.json"
    path.write_bytes(CONTENT)
    with path.open("rb") as opened, path.open("rb") as moved:
        moved.seek(10)
        given = {
            "path": path,
            "name": str(path),
            "bytes": CONTENT,
            "bytearray": bytearray(CONTENT),
            "memoryview": memoryview(CONTENT),
            "opened": opened,
            "moved": moved,
            "in memory": io.BytesIO(CONTENT),
            "upload": Upload(path, name="b.bin", content_type="image/x-own"),
        }
        seen = {
            name: client.measure(document=document)["document"] for name, document in given.items()
        }
    assert {each["bytes"] for name, each in seen.items() if name != "moved"} == {len(CONTENT)}
    assert seen["moved"]["bytes"] == len(CONTENT) - 10
    assert seen["opened"]["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    for name in ("path", "name", "opened"):
        assert (seen[name]["name"], seen[name]["type"]) == ("grün.json", "application/json")
    assert (seen["upload"]["name"], seen["upload"]["type"]) == ("b.bin", "image/x-own")
    assert seen["bytes"]["type"] == "application/octet-stream"


def test_a_pipe_is_sent_as_it_comes(client: Any) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"piped")
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert client.measure(document=pipe)["document"]["bytes"] == 5


def test_what_is_no_file_is_refused_before_anything_is_sent(client: Any, tmp_path: Path) -> None:
    with pytest.raises(BadArguments, match="document is a file: give a path") as caught:
        client.measure(document=5)
    assert [each.field for each in caught.value.violations] == ["document"]
    with pytest.raises(FileNotFoundError):
        client.measure(document=tmp_path / "nothing.txt")
    with pytest.raises(BadArguments, match="is a folder"):
        client.measure(document=tmp_path)
    with pytest.raises(BadArguments, match="mode 'rb'"):
        client.measure(document=io.StringIO("text"))
    with pytest.raises(BadArguments, match="title is no JSON"):
        client.measure(document=b"", title=b"bytes")


def test_a_file_that_shrinks_while_it_is_sent_is_told(client: Any) -> None:
    class Shrinking(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(size) if self.tell() == 0 else b""

    with pytest.raises(BadArguments, match="became shorter while it was sent"):
        client.measure(document=Shrinking(bytes(1_000_000)))


def test_a_file_larger_than_the_argument_takes_is_refused_by_its_name(client: Any) -> None:
    with pytest.raises(BadArguments) as caught:
        client.measure(document=b"", icon=bytes(1001))
    assert [each.field for each in caught.value.violations] == ["icon"]


def test_what_is_larger_than_the_server_takes_is_told(client: Any, tmp_path: Path) -> None:
    """The server reads no more of it, so that its answer may get lost."""
    path = tmp_path / "sparse.bin"
    with path.open("wb") as file:
        file.truncate(2 * 1024**3)
    with pytest.raises((RequestTooLarge, ConnectionBroken), match="larger"):
        client.measure(document=path)


def test_a_result_is_a_file_until_nobody_has_it(client: Any, tmp_path: Path) -> None:
    with client.paint(name="a.png") as file:
        assert isinstance(file, ResultFile)
        assert Path(file).read_bytes() == file.read() == file.open().read()
        assert file.size == 8
        path = file.path
    assert not os.path.exists(path)
    saved = client.paint(name="a.png")
    assert saved.save(tmp_path) == str(tmp_path / "a.png")
    saved.close()
    assert (tmp_path / "a.png").stat().st_size == 8
    dropped = client.paint(name="a.png").path
    gc.collect()
    assert not os.path.exists(dropped)


def test_a_result_goes_into_another_call_with_its_name_and_type(client: Any) -> None:
    seen = client.measure(document=client.paint(name="b.png"))["document"]
    assert (seen["name"], seen["type"], seen["bytes"]) == ("b.png", "image/png", 8)


def test_the_name_of_a_result_has_no_folders(make: MakeClient, server: Server) -> None:
    client = make(server.url, token=TOKEN)
    assert client.paint(name="../../etc/passwd").name in ("passwd", None)


MEMORY = """
    import asyncio, sys
    from pathlib import Path
    from tessera import AsyncHTTPClient, SyncHTTPClient

    kind, url, token, path = sys.argv[1:]

    def peak():
        text = Path("/proc/self/status").read_text()
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmHWM"))

    def sync():
        with SyncHTTPClient(url, token=token) as client:
            client.greet(name="Ada")
            before = peak()
            sent = client.measure(document=path)["document"]["bytes"]
            got = client.produce(bytes=sent).size
            return sent, got, peak() - before

    async def in_loop():
        async with AsyncHTTPClient(url, token=token) as client:
            await client.greet(name="Ada")
            before = peak()
            sent = (await client.measure(document=path))["document"]["bytes"]
            got = (await client.produce(bytes=sent)).size
            return sent, got, peak() - before

    print(*(sync() if kind == "sync" else asyncio.run(in_loop())))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads memory as Linux shows it")
@pytest.mark.parametrize("kind", ["sync", "async"])
def test_100_megabytes_there_and_back_take_little_memory(
    kind: str, server: Server, tmp_path: Path
) -> None:
    path = tmp_path / "large.bin"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    command = [sys.executable, "-c", textwrap.dedent(MEMORY), kind, server.url, TOKEN, str(path)]
    source = {"PYTHONPATH": str(ROOT / "clients" / "python" / "src")}
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **source}
    )
    assert ran.returncode == 0, ran.stderr
    sent, got, peak_kib = (int(each) for each in ran.stdout.split())
    assert sent == got == 100_000_000
    assert peak_kib < 20_000
