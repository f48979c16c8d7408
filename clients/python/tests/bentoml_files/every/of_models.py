"""Requests for the models."""

from __future__ import annotations

from .requests import Request, form, sent, values, written

DEEP = '{"value": 1, "children": [' * 30 + '{"value": 2}' + "]}" * 30

REQUESTS: list[Request] = [
    *values("person", '{"name": "Ada"}', '{"name": "Ada", "born": "1815-12-10T00:00:00Z"}', "{}"),
    *values("person", '{"name": "Ada", "streets": [{"name": "a"}, {"name": "", "number": "x"}]}'),
    *values("person", '{"name": "Ada", "balance": 2.50}', '{"name": "Ada", "other": 1}', "null"),
    *values("person", '{"name": 1, "born": "never", "balance": "a"}', "[]", '"Ada"'),
    *sent(
        "person", '{"name": "Ada"}', '{"value": {"name": "Ada"}, "other": 1}', "[]", "", "{", "null"
    ),
    *values("people", '[{"name": "a"}, {"name": "b"}]', '[{"name": "a"}, {}]', "[]", "{}"),
    *values(
        "aliased", '{"givenName": "Ada"}', '{"given": "Ada"}', '{"givenName": "A", "familyName": 1}'
    ),
    *values(
        "by_name", '{"givenName": "Ada"}', '{"given": "Ada"}', '{"given": "A", "givenName": "B"}'
    ),
    *values("by_name", "{}"),
    *values(
        "choices", '{"name": "a"}', '{"label": "b"}', '{"names": ["c"]}', '{"names": []}', "{}"
    ),
    *values("serialized", '{"name": "a"}', '{"theName": "a"}'),
    *values("checked", '{"low": 1, "high": 2}', '{"low": "least", "high": 2}', "[1, 2]", "[1]"),
    *values("checked", '{"low": 3, "high": 2}', '{"low": 1, "high": 13}', '{"low": 1}', '"a"'),
    *values("closed", '{"a": 1}', '{"a": 1, "b": 2}'),
    *values("opened", '{"a": 1}', '{"a": 1, "b": [1.0, null], "c": "ä"}', '{"b": 1}'),
    *values(
        "strictly", '{"a": 1}', '{"a": "1"}', '{"a": 1.0}', '{"a": 1, "at": "2026-01-02T03:04:05"}'
    ),
    *values("strictly", '{"a": 1, "at": 0}'),
    *values("pet", '{"kind": "cat"}', '{"kind": "dog", "barks": false}', '{"kind": "cow"}', "{}"),
    *values("pet", '{"kind": "cat", "lives": "many"}'),
    *values("cat_or_text", '{"kind": "cat"}', '"cat"', "1", '{"kind": "dog"}'),
    *values(
        "tree", '{"value": 1, "children": [{"value": 2}]}', DEEP, '{"value": 1, "children": [{}]}'
    ),
    *values("page_of", '{"items": [{"name": "a"}]}', '{"items": [{"name": ""}]}', '{"total": 1}'),
    *values("square", '{"side": 2}', '{"side": "a"}', '{"side": 2, "area": 1}'),
    *values("shown", '{"at": "2026-01-02T03:04:05"}', '{"at": "02.01.2026"}'),
    *values("tags", '["a", "b"]', "[1]", '{"root": ["a"]}', "[]"),
    *values("maybe_person", "null", '{"name": "Ada"}', "{}"),
    *sent("maybe_person", "{}", ""),
    *sent(
        "specified",
        '{"text": "a"}',
        '{"text": "a", "times": 4}',
        '{"times": 2}',
        '{"text": "a", "times": 2}',
    ),
    *sent("output_specified", '{"side": 2}', '{"side": "2"}', "{}"),
    form("person", written(value={"name": "Ada"})),
    form("person", {"value": "Ada"}),
    form("checked", written(value=[1, 2])),
    form("specified", {"text": "a", "times": "2"}),
]
