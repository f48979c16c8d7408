"""What is known to differ in kind: rows of the table in ``docs/coming-from-bentoml.md``.

A difference of a single request is declared with the request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bentoml

from .compared import names_some
from .of_http import PAGES
from .requests import OLD, Request

IS_OLD = bentoml.__version__.startswith("1.3.")

PAGE = Path(__file__).resolve().parents[5] / "docs/coming-from-bentoml.md"


def documented() -> list[str]:
    """The names of the rows of the table, without its marks of code."""
    section = PAGE.read_text().partition("## What differs\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (.+?) (?<!\\)\|.*\|$", section, re.MULTILINE)
    return [each.replace("`", "").replace("\\|", "|") for each in lines if each != "what"]


@dataclass(frozen=True)
class Rule:
    """A difference that is accepted wherever it is found."""

    row: str
    differences: tuple[str, ...]
    covers: Callable[[Request, Any, Any], bool]
    """Of the request, what is ours, and what is theirs."""


def _is_json_with_charset(_: Request, our: Any, their: Any) -> bool:
    return (our, their) == (["application/json; charset=utf-8"], ["application/json"])


def _is_quoted(_: Request, our: Any, their: Any) -> bool:
    return (our, their) == (["application/json; charset=utf-8"], ["text/plain; charset=utf-8"])


def _is_bare(_: Request, our: Any, their: Any) -> bool:
    return (our, their) == (["text/plain; charset=utf-8"], ["application/json"])


def _is_binary(_: Request, our: Any, their: Any) -> bool:
    known = ("text/plain; charset=utf-8", "text/event-stream; charset=utf-8", "application/json")
    return our == ["application/octet-stream"] and their in [[each] for each in known]


def _is_disposition(_: Request, our: Any, their: Any) -> bool:
    """The name of the file is the same, where they send one."""
    return len(our) == 1 and all(_filename(each) == _filename(our[0]) for each in their)


def _filename(disposition: str) -> str:
    encoded = re.search(r"filename\*=(?:utf-8|UTF-8)''([^;]+)", disposition)
    plain = re.search(r'filename="([^"]*)"', disposition)
    return (encoded or plain or [disposition, ""])[1]


def _is_lines(_: Request, our: Any, their: Any) -> bool:
    if isinstance(our, bytes):
        return b"".join(our.splitlines()) == bytes(their)
    return our == ["application/x-ndjson; charset=utf-8"]


def _is_refused_by_both(_: Request, our: Any, their: Any) -> bool:
    return True


def _is_argument_before_slash(request: Request, our: Any, their: Any) -> bool:
    """Ours has its name, which BentoML does not know."""
    if not request.since:
        return False
    ours = [each.partition(".")[2] if each.startswith("value") else each for each in our]
    theirs = [each.partition(".")[2] if each.startswith("root") else each for each in their]
    return names_some(ours, theirs)


def _is_ours(_: Request, our: Any, their: Any) -> bool:
    return their == [] and len(our) == 1


def _is_of_task(request: Request, our: Any, their: Any) -> bool:
    return request.is_task and _is_ours(request, our, their)


def _is_about_task(request: Request, our: Any, their: Any) -> bool:
    """Ours says more, and that it is accepted."""
    if not request.is_task or request.verb == "get":
        return False
    if isinstance(our, bytes):
        return {*json.loads(our)} >= {*json.loads(their)} - {"executed_at"}
    return (our, their) == (202, 200) or _is_ours(request, our, their)


def _is_page(request: Request, our: Any, their: Any) -> bool:
    return request.path in PAGES and our != 404


def _is_theirs(_: Request, our: Any, their: Any) -> bool:
    return our == [] and len(their) == 1


def _is_probe(request: Request, our: Any, their: Any) -> bool:
    if request.path not in ("/livez", "/healthz", "/readyz"):
        return False
    return not isinstance(our, bytes) or (their == b"\n" and "status" in json.loads(our))


def _is_text_of_old_stream(_: Request, our: Any, their: Any) -> bool:
    known = (["text/plain; charset=utf-8"], ["application/json"])
    return our == ["text/event-stream; charset=utf-8"] and their in known


PAGE_HEADERS = (
    *("content-type", "content-security-policy", "x-content-type-options", "cache-control"),
    *("etag", "last-modified", "accept-ranges", "referrer-policy", "x-frame-options", "link"),
)

RULES = [
    Rule("the type of JSON", ("content-type",), _is_json_with_charset),
    Rule("the body of an error", ("error",), _is_refused_by_both),
    Rule("the body of an error", ("fields",), _is_argument_before_slash),
    Rule("probes", ("body", "content-type"), _is_probe),
    Rule("a date, a UUID, an enum as the result", ("content-type",), _is_quoted),
    Rule("a text as the result of Any, of a union", ("content-type",), _is_bare),
    Rule("bytes as the result", ("content-type",), _is_binary),
    Rule("values that a method yields", ("body", "content-type"), _is_lines),
    Rule(
        "the head of a stream", ("cache-control", "x-accel-buffering", "tessera-pieces"), _is_ours
    ),
    Rule("a file in a browser", ("content-disposition",), _is_disposition),
    Rule("a file in a browser", ("content-security-policy", "x-content-type-options"), _is_ours),
    Rule("a returned Path", ("etag", "last-modified", "accept-ranges"), _is_theirs),
    Rule("the answers about a task", ("status", "body", "location"), _is_about_task),
    Rule("pages and descriptions", ("body", *PAGE_HEADERS), _is_page),
    Rule("the result of a task", ("etag", "accept-ranges"), _is_of_task),
    Rule("compressed answers", ("content-encoding", "vary"), _is_ours),
]
if IS_OLD:
    RULES.append(Rule(OLD, ("content-type",), _is_text_of_old_stream))
