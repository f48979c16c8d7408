"""Requests for files, pictures, arrays and tables."""

from __future__ import annotations

from cases import picture

from .requests import OLD, Request, Upload, form, sent, values, written

TEXT: Upload = ("in.txt", "grüezi".encode(), "text/plain")
PNG: Upload = ("a.png", picture(), "image/png")
GIF: Upload = ("a.gif", picture("GIF"), "image/gif")
NOTHING: Upload = ("empty.txt", b"", "text/plain")
NO_TYPE: Upload = ("in.bin", b"abc", "application/octet-stream")
ROWS = '[{"a": 1, "b": "x"}, {"a": null, "b": "ä"}]'

UNREADABLE = "what cannot be read"
OTHER_PICTURE = "a picture of another kind than it says"
NAME = "the name of a file"
NUMBER = "JSON in a form for a text"
SEVERAL = "one value, or several of one name, in a form for a list"
FRAME = '{"width": 1}'
NO_PICTURE = "a picture under the type of no picture"
NO_UTF8 = "bytes that are no UTF-8 in a part of a form"

REQUESTS: list[Request] = [
    form("file", None, ("file", TEXT)),
    form("file", None, ("file", NOTHING)),
    form("file", None, ("other", TEXT), old_row=OLD),
    form("file", {"other": "1"}, ("file", TEXT)),
    form("file"),
    *sent("file", "{}", ""),
    *sent("file", '{"file": "a"}', old_row=OLD),
    Request("/file", b"abc", {"content-type": "text/plain"}, old_row=OLD),
    form("plain", None, ("file", TEXT)),
    form(
        "plain",
        None,
        ("file", ("a.txt", b"12", "text/plain; charset=utf-8")),
        row="parameters of the type of a file",
        old_row="",
    ),
    form("plain", None, ("file", ("a.html", b"<p>", "text/html"))),
    form("sound", None, ("file", ("a.mp3", b"12", "audio/mpeg"))),
    form("sound", None, ("file", ("a.mp3", b"12", "audio/wav"))),
    form("ending", None, ("file", ("a.tar.gz", b"12", "application/gzip"))),
    form("ending", None, ("file", ("noext", b"12", "text/plain"))),
    form("ending", None, ("file", ("../../ä b.txt", b"12", "text/plain")), old_row=OLD),
    form("file", None, ("file", ("large.txt", b"0123456789" * 300_000, "text/plain"))),
    form("ending", None, ("file", ('quoted "name".txt', b"1", "text/plain"))),
    form("ending", None, ("file", ("a;b=c.tar", b"1", "text/plain"))),
    form("ending", None, ("file", ("n" * 300 + ".txt", b"1", "text/plain")), row=NAME),
    form("ending", None, ("file", (".hidden", b"1", "text/plain")), row=NAME),
    form("ending", None, ("file", ("a.", b"1", "text/plain"))),
    form("file", None, ("file", ("", b"1", "text/plain")), row=UNREADABLE),
    form("two", None, ("first", TEXT), ("second", TEXT), ("third", TEXT), old_row=OLD),
    form("two", {"first": "a"}, ("second", TEXT), row=UNREADABLE),
    form("file", {"file": "text"}, row=UNREADABLE),
    form("file", {"file": ""}, row=UNREADABLE),
    form("several", {"files": "a"}, ("files", TEXT), row=UNREADABLE),
    form("mixed", {"frame": FRAME, "words": "a", "scale": "1"}, ("file", TEXT), row=SEVERAL),
    form("mixed", {"frame": FRAME, "name": "12"}, ("file", TEXT), row=NUMBER),
    form("text", None, ("value", (None, "ä".encode(), "text/plain"))),
    form("text", None, ("value", (None, b"\xff", "text/plain")), row=NO_UTF8),
    form("integer", None, ("value", (None, b"5", "application/json"))),
    form("integer", None, ("value", (None, b"x", "application/json"))),
    form("octets", None, ("value", ("a.bin", b"abc", "application/octet-stream")), old_row=OLD),
    form("array", {"value": "[[1, 2]]"}),
    form("table", {"value": '[{"a": 1}]'}),
    form("columns", {"value": '{"a": [1], "b": [2]}'}),
    form("maybe_file", None, ("file", TEXT), row="Path | None"),
    *sent("maybe_file", '{"file": "/etc/passwd"}', row="Path | None"),
    form("maybe_file", None, ("other", TEXT), old_row=OLD),
    *sent("maybe_file", "{}", '{"file": null}'),
    form("several", None, ("files", TEXT), ("files", ("b", b"b", "text/plain"))),
    form("several", None, ("files", TEXT)),
    form("several", None, ("other", TEXT), row="no file for a list of files"),
    form("two", None, ("first", TEXT), ("second", NO_TYPE)),
    form("two", None, ("first", TEXT)),
    form("mixed", written(frame={"width": 1}), ("file", TEXT)),
    form(
        "mixed", {**written(frame={"width": 1}, scale=2, words=["a"]), "name": "n"}, ("file", TEXT)
    ),
    form("mixed", written(frame={"width": "a"}), ("file", TEXT)),
    form("mixed", written(scale="a", frame={}), ("file", TEXT)),
    form("mixed", written(frame={"width": 1})),
    form("mixed", {"frame": "{"}, ("file", TEXT)),
    form("picture", None, ("image", PNG)),
    form("picture", None, ("image", GIF)),
    form("picture", None, ("image", ("a.jpg", picture("JPEG"), "image/jpeg"))),
    form("picture", None, ("image", ("a.png", b"no picture", "image/png")), row=UNREADABLE),
    form("picture", None, ("image", ("a.png", picture(), "image/jpg")), row=OTHER_PICTURE),
    form("picture", None, ("image", ("a.png", picture(), "image/gif")), row=OTHER_PICTURE),
    form("picture", None, ("image", ("a.png", picture(), "application/pdf")), row=NO_PICTURE),
    form("file", {"file": "http://127.0.0.1:9/none"}, row="the URL of a file in a form"),
    form("octets", None, ("value", ("a", bytes([255]), "application/octet-stream")), row=NO_UTF8),
    form("picture", None, ("image", ("a.png", picture(), "application/octet-stream"))),
    form("picture", None, ("other", PNG), row=UNREADABLE),
    *sent("picture", "{}"),
    form("pictures", None, ("images", PNG), ("images", GIF)),
    form("pictures", None, ("images", PNG), ("images", ("b", b"", "image/png")), row=UNREADABLE),
    *sent(
        "returned_picture",
        '{"width": 3}',
        '{"width": 3, "kind": "JPEG"}',
        '{"width": 3, "kind": "BMP"}',
    ),
    *sent("returned_picture", '{"width": "a"}', '{"width": 1, "kind": "NONE"}'),
    *sent(
        "returned_file",
        '{"name": "a.txt"}',
        '{"name": "a.png"}',
        '{"name": "a.json"}',
        '{"name": "a"}',
    ),
    *sent("returned_file", '{"name": "ä b.html"}', '{"name": "a.pdf"}'),
    *sent("typed_file", "{}"),
    *sent("returned_bytes", '{"size": 3}', '{"size": 0}', '{"size": 256}', '{"size": 257}'),
    *sent("typed_bytes", '{"size": 3}'),
    *values(
        "array", "[1, 2]", "[[1.5, 2], [3, 4]]", "[]", "1", "[[1, 2], [3]]", '"a"', "null", '["a"]'
    ),
    *values("array", "[true, false]", "[1, 2.5]", "[9007199254740993]", "[NaN, 1]", '{"a": 1}'),
    *values(
        "doubled",
        "[1, 2]",
        "[1.5]",
        "[-0.0]",
        "[1e308]",
        "[[1, 2], [3, 4]]",
        "[4611686018427387904]",
    ),
    *values(
        "shaped",
        "[[1, 2], [3, 4]]",
        "[1, 2]",
        "[[0.1, 0.2], [1e39, 0]]",
        '[["a", 1], [1, 1]]',
        "[1]",
    ),
    *values("whole", "[1, 2]", "[1.5]", "[9223372036854775807]", "[1e3]", '["1"]'),
    *values("table", ROWS, "[]", '{"a": [1, 2], "b": [3, 4]}', '{"a": 1}', "1", '"a"', "null"),
    *values(
        "table",
        '[{"a": 1.0}]',
        '[{"a": true}, {"b": 2}]',
        '[{"a": {"b": 1}}]',
        '[{"a": "2026-01-02"}]',
    ),
    *values(
        "columns", '{"a": [1, 2], "b": [3, 4]}', '{"a": [1], "c": [2]}', '[{"a": 1, "b": 2}]', "{}"
    ),
    *sent("array_and_table", '{"value": [1, 2], "rows": [{"a": 1}], "by": 3}', '{"value": [1]}'),
    form("array_and_table", written(value=[1, 2], rows=[{"a": 1}], by=2)),
    form("array", written(value=[[1, 2], [3, 4]])),
    form("doubled", None, ("value", ("blob", b"[1, 2]", "application/json")), old_row=OLD),
]
