"""Requests whose body is the value."""

from __future__ import annotations

from cases import picture

from .requests import JSON, Request, sent

SINCE = "1.4"


def body(name: str, content: str | bytes, content_type: str = JSON, **other: str) -> Request:
    """A body of some type."""
    data = content.encode() if isinstance(content, str) else content
    return Request(f"/{name}", data, {"content-type": content_type}, since=SINCE, **other)


REQUESTS: list[Request] = [
    body("root_text", "grüezi", "text/plain"),
    body("root_text", '"quoted"', row="JSON for a text before /"),
    body("root_text", '{"value": "a"}', row="JSON for a text before /"),
    body("root_text", "a", "text/plain; charset=utf-8"),
    *sent("root_integer", "5", '"5"', '"a"', "5.5", "null", "[5]", "9007199254740993", since=SINCE),
    *sent("root_flag", "false", "1", '"no"', "2", since=SINCE),
    *sent("root_numbers", "[1, 2.5]", "[]", '["a"]', "1", "[NaN]", since=SINCE),
    *sent("root_numbers", "[", since=SINCE, row="what cannot be read"),
    *sent("root_mapping", '{"a": 1.0}', "{}", "[]", '{"value": 1}', since=SINCE),
    *sent("root_optional", "1", "null", '"a"', since=SINCE),
    *sent("root_person", '{"name": "Ada"}', "{}", '{"name": 1}', "[]", since=SINCE),
    *sent("root_person", '{"name": "Ada", "streets": [{"name": ""}]}', since=SINCE),
    *sent("root_checked", '{"low": 1, "high": 3}', "[1, 2]", '{"low": 3, "high": 1}', since=SINCE),
    *sent("root_tags", '["a"]', "[1]", since=SINCE),
    body("root_day", "2026-01-02", "text/plain"),
    body("root_day", "yesterday", "text/plain"),
    body("root_file", "grüezi", "text/plain"),
    body("root_file", b"grueezi", "application/octet-stream"),
    body("root_file", b"", "application/octet-stream", row="no body for a text or a file before /"),
    body("root_text", b"", "text/plain", row="no body for a text or a file before /"),
    body("root_picture", picture(), "image/png"),
    body("root_picture", b"no picture", "image/png", row="what cannot be read"),
    Request("/root_integer", data={"value": "1"}, since=SINCE, row="/-arguments in a form"),
    body("root_bytes", bytes([0, 255]), "application/octet-stream"),
    body("root_bytes", "abc", "text/plain"),
    *sent("root_array", "[[1, 2], [3, 4]]", "[1.5]", "[[1], [2, 3]]", since=SINCE),
    *sent("root_table", '[{"a": 1}]', '{"a": [1, 2]}', "1", since=SINCE),
]
