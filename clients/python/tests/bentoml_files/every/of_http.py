"""Requests that are odd in themselves: methods, paths, types of bodies, headers, codings."""

from __future__ import annotations

import gzip
import zlib

from .requests import JSON, OLD, Request

BODY = b'{"value": 1}'


def typed(
    content_type: str | None,
    content: bytes = BODY,
    path: str = "/integer",
    row: str = "",
    old_row: str | None = None,
) -> Request:
    """A body under some name."""
    headers = {} if content_type is None else {"content-type": content_type}
    return Request(
        path, content, headers, title=f"{content_type} {content!r}", row=row, old_row=old_row
    )


WORDS = b'{"text": "a b"}'
TEXT = "JSON in a form for a text"
SEVERAL = "one value, or several of one name, in a form for a list"
DECIMAL = "a number in a form for a Decimal"
PAGES = ("/", "/metrics")

REQUESTS: list[Request] = [
    *(
        Request("/integer", BODY, {"content-type": JSON}, method)
        for method in ("PUT", "PATCH", "DELETE")
    ),
    *(Request("/integer", method=method) for method in ("GET", "HEAD", "OPTIONS")),
    *(Request("/nowhere", method=method) for method in ("GET", "HEAD", "POST", "OPTIONS")),
    *(
        Request(path, BODY, row="a slash at the end of a path")
        for path in ("/integer/", "/integer%2F")
    ),
    *(Request(path, BODY) for path in ("/Integer", "//integer", "/integer/more")),
    *(Request(path, BODY) for path in ("/%69nteger", "/integer?value=2")),
    *(Request(path, BODY) for path in ("/__init__", "/dictionary", "/translate", "/every/integer")),
    Request("/v1/routed", method="GET"),
    Request("/add/submit", method="GET"),
    Request("/add/status", method="GET"),
    Request("/add/status?task_id=none", method="GET"),
    Request("/add/get?task_id=none", method="GET"),
    Request("/add/get", method="GET"),
    Request("/add/retry?task_id=none", b""),
    Request("/integer/submit", BODY),
    *(Request(path, method="GET") for path in ("/livez", "/healthz", "/readyz")),
    *(Request(path, method="GET") for path in PAGES),
    Request("/integer", BODY, {"content-type": JSON}, is_chunked=True, title="in chunks"),
    Request("/integer", b"", {"content-type": JSON}, is_chunked=True, title="no chunks"),
    typed(None),
    typed(JSON),
    typed("application/json; charset=utf-8"),
    typed("application/json;charset=UTF-8"),
    typed("APPLICATION/JSON", old_row=OLD),
    typed("text/json", old_row=OLD),
    typed("text/plain", old_row=OLD),
    typed("application/octet-stream", old_row=OLD),
    typed("application/vnd.api+json", old_row=OLD),
    typed("application/x-unknown", old_row=OLD),
    typed("*/*", old_row=OLD),
    typed("nonsense", old_row=OLD),
    typed("application/json, application/json", old_row=OLD),
    typed("application/vnd.bentoml+pickle", row="a body called application/vnd.bentoml+pickle"),
    typed("text/html", old_row=OLD),
    typed("image/png", old_row=OLD),
    typed("application/xml", b"<value>1</value>", row="a body of another type"),
    typed("multipart/form-data", row="what cannot be read"),
    typed("multipart/form-data; boundary=x", b"no parts", row="what cannot be read"),
    typed("multipart/form-data; boundary=x", b"--x--\r\n"),
    typed(
        "multipart/form-data; boundary=x",
        b'--x\r\ncontent-disposition: form-data; name="value"\r\n\r\n7\r\n--x--\r\n',
    ),
    typed("application/x-www-form-urlencoded", b"value=3"),
    typed("application/x-www-form-urlencoded", b"value=3&other=4"),
    typed("application/x-www-form-urlencoded", b"value=a"),
    typed("application/x-www-form-urlencoded", b"value="),
    typed("application/x-www-form-urlencoded", b""),
    typed("application/x-www-form-urlencoded", b"value=%C3%A4+b", "/text"),
    typed("application/x-www-form-urlencoded", b"value=%22a%22", "/text"),
    typed("application/x-www-form-urlencoded", b"value=true", "/flag"),
    typed("application/x-www-form-urlencoded", b"value=null", "/optional"),
    typed("application/x-www-form-urlencoded", b"value=%5B1%2C2%5D", "/numbers"),
    typed("application/x-www-form-urlencoded", b"value=red", "/color"),
    typed("application/x-www-form-urlencoded", b"value=2026-01-02", "/day"),
    typed("application/x-www-form-urlencoded", b"value=1.10", "/amount"),
    typed(
        "application/x-www-form-urlencoded",
        b"value=12",
        "/text",
        row=TEXT,
    ),
    typed(
        "application/x-www-form-urlencoded",
        b"value=true",
        "/text",
        TEXT,
    ),
    typed(
        "application/x-www-form-urlencoded",
        b"value=a",
        "/sequence",
        SEVERAL,
    ),
    typed(
        "application/x-www-form-urlencoded",
        b"value=1&value=2",
        row=SEVERAL,
    ),
    typed(
        "application/x-www-form-urlencoded",
        b"value=1&value=2",
        "/numbers",
        row=SEVERAL,
    ),
    typed(JSON, b""),
    typed(None, b""),
    typed(JSON, b" "),
    typed(JSON, b"{"),
    typed(JSON, b'{"value": 1} x'),
    typed(JSON, b'{"value": 1,}'),
    typed(JSON, b"{'value': 1}"),
    typed(JSON, b"\xef\xbb\xbf" + BODY),
    typed(JSON, b'{"value": "\xff"}', "/text"),
    typed(JSON, b'{"value": "\\ud800"}', "/text"),
    typed(JSON, b'{"value": 1, "value": 2}'),
    typed(JSON, b'{"value": /* one */ 1}'),
    typed(JSON, b'\n\t {"value"\r\n: 1 }  '),
    typed(JSON, '{"value": 1}'.encode("utf-16")),
    typed(JSON, b"[" * 500 + b"]" * 500),
    typed(JSON, b'{"value": 01}'),
    typed(JSON, b'{"value": +1}'),
    typed(JSON, b'{"value": .5}', "/number"),
    typed(JSON, b'{"value": "a\tb"}', "/text"),
    *(
        Request("/movie", b'{"value": {"title": "M"}}', {"content-type": JSON, "accept": accept})
        for accept in ("application/json", "text/plain", "image/*", "*/*;q=0", "nonsense", "")
    ),
    Request("/text", b'{"value": "a"}', {"content-type": JSON, "accept": "application/json"}),
    *(
        Request("/words", WORDS, {"content-type": JSON, "accept": accept}, row=row, title=accept)
        for accept, row in (
            ("text/event-stream", ""),
            ("text/plain", ""),
            ("application/json", "what Accept asks for"),
            ("application/x-ndjson", "what Accept asks for"),
        )
    ),
    *(
        Request(
            "/movie",
            b'{"value": {"title": "M"}}',
            {"content-type": JSON, "accept-encoding": coding},
            title=coding,
        )
        for coding in ("gzip", "identity", "br", "nonsense", "*;q=0")
    ),
    typed("application/x-www-form-urlencoded", b"value%5B%5D=1&value%5B%5D=2", "/numbers"),
    typed("application/x-www-form-urlencoded", b"value=1;other=2"),
    typed("application/x-www-form-urlencoded; charset=utf-8", b"value=3"),
    typed("application/x-www-form-urlencoded", b"value=%FF", "/text"),
    typed("application/x-www-form-urlencoded", b"value=+7+"),
    typed("application/x-www-form-urlencoded", b"=1&value=1", row="a field without a name"),
    typed("application/x-www-form-urlencoded", b"value=1e3", "/number"),
    typed("application/x-www-form-urlencoded", b"value=NaN", "/number"),
    typed("application/x-www-form-urlencoded", b"value=9007199254740993"),
    typed("application/x-www-form-urlencoded", b"value=yes", "/flag"),
    typed("application/x-www-form-urlencoded", b"value=90", "/span"),
    typed("application/x-www-form-urlencoded", b"value=1.5", "/span"),
    typed("application/x-www-form-urlencoded", b"value=-P1D", "/span"),
    typed("application/x-www-form-urlencoded", b"value=3600", "/hour"),
    typed("application/x-www-form-urlencoded", b"value=1e3", "/moment"),
    typed("application/x-www-form-urlencoded", b"value=1767323045", "/instant"),
    typed("application/x-www-form-urlencoded", b"value=86400", "/day"),
    typed("application/x-www-form-urlencoded", b"value=1.0", "/amount", DECIMAL),
    typed("application/x-www-form-urlencoded", b"value=1e3", "/amount", DECIMAL),
    typed("application/x-www-form-urlencoded", b"value=null", "/text", TEXT),
    typed("application/x-www-form-urlencoded", b"value=%5B1%5D", "/secret", TEXT),
    typed("application/x-www-form-urlencoded", b"value=%7B%7D", "/either", TEXT),
    typed("application/x-www-form-urlencoded", b"value=1", "/address", TEXT),
    typed("application/x-www-form-urlencoded", b"value=5", "/array", SEVERAL),
    typed("application/x-www-form-urlencoded", b"value=a", "/letters", SEVERAL),
    typed("application/x-www-form-urlencoded", b"value=%7B%22a%22%3A1%7D", "/table_of"),
    typed("application/x-www-form-urlencoded", b"value=a", "/either"),
    typed("application/x-www-form-urlencoded", b"value=1", "/either"),
    typed("application/x-www-form-urlencoded", b"value=2", "/level"),
    typed("application/x-www-form-urlencoded", b"value=3", "/choice"),
    typed("application/x-www-form-urlencoded", b"value=a%2Cb", "/before"),
    typed(
        "application/x-www-form-urlencoded",
        b"value=6fa459ea-ee8a-3ca4-894e-db77e160355e",
        "/identity",
    ),
    typed("application/x-www-form-urlencoded", b"value=", "/optional"),
    typed("application/x-www-form-urlencoded", b"value=", "/text"),
    typed("application/x-www-form-urlencoded", b"value=x", "/anything"),
    typed("application/x-www-form-urlencoded", b"value=5", "/anything"),
    typed("application/x-www-form-urlencoded", b"a=1&b=x&e=false", "/defaults"),
    typed("application/json; charset=latin-1", row="another charset than UTF-8"),
    typed("application/json; charset=utf-16", row="another charset than UTF-8"),
    typed("application/json; boundary=x"),
    typed(JSON, b"\x00"),
    typed(JSON, b'{"value": 1}\x00'),
    typed(JSON, b'\x0b{"value": 1}'),
    typed(JSON, b'{"value": 1}{"value": 2}'),
    typed(JSON, b'{"value": "\\x"}', "/text"),
    typed(JSON, b'{"value": -}', "/number"),
    typed(JSON, b'{"value": tru}', "/flag"),
    typed(JSON, b'{"value": 1.}', "/number"),
    typed(JSON, b'{"value": 1e}', "/number"),
    typed(JSON, b"{value: 1}"),
    typed(JSON, b'{"value": undefined}'),
    typed(JSON, b'{"value": -NaN}', "/number"),
    typed(JSON, b'{"value": -Infinity}', "/number"),
    typed(JSON, b'{"value": Infinit}', "/number"),
    typed(JSON, b'{"value": "\\ud83d\\ude00\\u00e4"}', "/text"),
    typed(JSON, b'{"value": [' + b"1," * 3000 + b"1]}", "/numbers"),
    typed(JSON, b'{"value": ' + b"9" * 5000 + b"}", "/integer"),
    typed(JSON, b'{"value": ' + b"9" * 400 + b"}", "/number"),
    typed(JSON, b'{"value": 0.' + b"1" * 400 + b"}", "/amount"),
    Request("/html", b"{}", {"content-type": JSON, "accept": "application/json"}),
    Request(
        "/integer",
        gzip.compress(BODY, mtime=0),
        {"content-type": JSON, "content-encoding": "gzip"},
        row="compressed bodies",
    ),
    Request(
        "/integer",
        zlib.compress(BODY),
        {"content-type": JSON, "content-encoding": "deflate"},
        row="compressed bodies",
    ),
    Request("/integer", BODY, {"content-type": JSON, "content-encoding": "identity"}),
    Request(
        "/integer",
        BODY,
        {"content-type": JSON, "content-encoding": "nonsense"},
        row="compressed bodies",
    ),
    Request("/integer", BODY, {"content-type": JSON, "expect": "100-continue"}),
    Request(
        "/integer",
        BODY,
        {"content-type": JSON, "origin": "https://elsewhere.example"},
        row="pages of other sites",
    ),
    Request("/integer", BODY, {"content-type": JSON, "x-long": "a" * 4000}),
    Request("/integer", BODY, {"content-type": JSON, "authorization": "Bearer nobody"}),
    Request("/integer", BODY, {"content-type": JSON, "range": "bytes=0-0"}),
    Request("/integer", BODY, {"content-type": JSON, "if-none-match": "*"}),
    Request("/integer", BODY, {"content-type": JSON, "x-http-method-override": "GET"}),
]
