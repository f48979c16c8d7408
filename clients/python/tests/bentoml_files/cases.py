"""Calls of ``eight.py`` and ``roots.py``, as a caller sends them over HTTP."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any

from PIL import Image

Upload = tuple[str, bytes, str]
"""Name, bytes, media type."""


@dataclass(frozen=True)
class Case:
    """One call."""

    endpoint: str
    json: Any = None
    files: tuple[tuple[str, Upload], ...] = ()
    raw: tuple[str, bytes] | None = None
    """A body that is no object of arguments: its type and its bytes."""
    value: Any = None
    """The same as the argument that it is."""
    route: str = ""
    fails: bool = False
    is_task: bool = False
    is_lines: bool = False
    """The result is a stream of JSON values."""
    broken_in: str = ""
    """A version of BentoML whose own server fails with it."""
    title: str = field(default="")

    def __str__(self) -> str:
        return self.title or f"{self.endpoint} {self.json or ''}{'+files' if self.files else ''}"


def picture(kind: str = "PNG") -> bytes:
    """A picture of four pixels."""
    image = Image.new("RGB", (2, 2), (200, 30, 60))
    image.putpixel((0, 0), (0, 0, 255))
    buffer = BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


TEXT: Upload = ("in.txt", "grüezi".encode(), "text/plain")
ROWS = [{"price": 1.5, "count": 2, "name": "ä"}, {"price": 2.0, "count": 0, "name": None}]

EIGHT = [
    Case("text", {"name": "Ada"}),
    Case("text", {"name": 'ä"\n😀', "times": 2, "excited": True}),
    Case("text", {"times": 2}, fails=True),
    Case("model", {"person": {"name": "Ada", "born": "1815-12-10T00:00:00"}}),
    Case("model", {"person": {"name": "ä", "addresses": [{"street": "x"}]}, "note": "Gasse"}),
    Case("model", {"person": {"name": "Ada", "addresses": [{"street": ""}]}}, fails=True),
    Case("image", {"size": 3}, (("picture", ("a.png", picture(), "image/png")),)),
    Case("image", {}, (("picture", ("a.bmp", picture("BMP"), "image/bmp")),)),
    Case("path", {"upper": False}, (("document", TEXT),)),
    Case("path", {}, (("document", ("a.md", b"x" * 1000, "text/markdown")),)),
    Case("array", {"numbers": [[1, 2], [3, 4.5]]}),
    Case("array", {"numbers": [1, 2, 3, 4], "by": 0.1}),
    Case("array", {"numbers": [1e308, 1, 1, 1], "by": 10}),
    Case("table", {"rows": ROWS}),
    Case("table", {"rows": {"price": [1, 2], "count": [3, 4]}}),
    Case("tokens", {"prompt": "to be ör not"}),
    Case("depends", {"text": "hello world"}),
    Case("count", {"items": [1, 2, 3]}, is_task=True, broken_in="1.4.0"),
    Case("pairs", {"kwargs": {"a": 1, "b": ["ä", None]}}, route="/v1/pairs"),
    Case("anything", {"value": {"a": [1, 2.5, None, "ä"]}}),
    Case("anything", {"value": "bare"}),
    Case("anything", {"value": None}),
    Case("several", {}, (("files", TEXT), ("files", ("b.txt", b"b", "text/plain")))),
    Case("maybe", {"text": "ä"}),
    Case("maybe", {}),
    Case("raw", {"size": 256}),
    Case("page", {}),
    Case("objects", {"count": 3}, is_lines=True),
    Case("refuse", {"status": 404}, fails=True),
    Case("refuse", {"status": 503}, fails=True),
    Case("answer", {"status": 201}, broken_in="1.4.0"),
    Case("answer", {"status": 409}, broken_in="1.4.0"),
    Case("double", {"numbers": [1, 2, 3]}),
    Case("double", {"numbers": [1, 2, 3, 4, 5, 6, 7, 8, 9]}),
    Case("double", {"numbers": [13]}, fails=True),
    Case("sums", {"matrix": [[1.5, 2], [3, 4]]}),
]

ROOTS = [
    Case("text", raw=("text/plain", "grüezi".encode()), value="grüezi"),
    Case("point", {"x": 1, "y": 2}),
    Case("numbers", raw=("application/json", b"[1, 2, 3]"), value=[1, 2, 3]),
    Case("array", raw=("application/json", b"[[1, 2], [3, 4]]"), value=[[1, 2], [3, 4]]),
    Case("document", raw=("text/plain", "grüezi".encode()), value=TEXT),
    Case("picture", raw=("image/png", picture()), value=("", picture(), "image/png")),
    Case("data", raw=("application/json", b'{"a": 1}'), value={"a": 1}),
    Case(
        "data",
        raw=("application/json", b'{"data": {"a": 9007199254740993, "b": 1.0, "c": -0.0}}'),
        value={"data": {"a": 9007199254740993, "b": 1.0, "c": -0.0}},
    ),
    Case(
        "array",
        raw=("application/json", b"[[1, NaN], [-Infinity, 1e400]]"),
        value=[[1, math.nan], [-math.inf, math.inf]],
    ),
    Case("numbers", raw=("application/json", b'["1", 2.0, true]'), value=["1", 2.0, True]),
]
