"""Requests for answers, streams, tasks, batches, dependencies and paths."""

from __future__ import annotations

from .requests import JSON, Request, form, sent

ASKED = {"content-type": JSON, "x-asked": "why", "cookie": "a=1; b=2", "user-agent": "me/1"}

STATUS = "the status of an exception"

REQUESTS: list[Request] = [
    *sent("status", '{"status": 201}', '{"status": 202}', '{"status": 404}', '{"status": 418}'),
    *sent("status", '{"status": 500}', '{"status": 503}', '{"status": "a"}'),
    *sent("headers", '{"headers": {"x-a": "1", "X-B": "two words"}}', '{"headers": {}}'),
    *sent("headers", '{"headers": {"content-type": "text/markdown"}}'),
    *sent("headers", '{"headers": {"cache-control": "no-store", "etag": "\\"a\\""}}'),
    *sent("headers", '{"headers": {"location": "/a", "link": "<a>; rel=next"}}'),
    *sent("headers", '{"headers": {"x-a": 1}}'),
    *sent("cookies", '{"name": "a"}', '{"name": "a", "value": "b c; d"}', '{"value": "b"}'),
    Request("/request?q=1&r=%C3%A4&q=2", b"{}", ASKED),
    Request("/request", b"{}", {"content-type": JSON, "accept": "application/json"}),
    *sent("response", '{"kind": "json"}', '{"kind": "json", "status": 201}', '{"kind": "html"}'),
    *sent("response", '{"kind": "text"}', '{"kind": "text", "status": 404}'),
    *sent("response", '{"kind": "redirect"}', row="a Response without a type"),
    *sent("response", '{"kind": "stream"}', '{"kind": "empty"}', '{"kind": "own"}', "{}"),
    *sent("response", '{"kind": "own", "status": 500}', '{"kind": "json", "status": 422}'),
    *sent("said_and_returned", "{}"),
    *sent("html", "{}"),
    *sent("csv", "{}"),
    *sent("refuse", '{"status": 400}', '{"status": 401}', '{"status": 403}', '{"status": 404}'),
    *sent("refuse", '{"status": 409}', '{"status": 429}', '{"status": 500}', '{"status": 501}'),
    *sent("refuse", '{"status": 503}', '{"status": 504}', '{"status": 400, "said": "ä"}'),
    *sent("refuse", '{"status": 405}', '{"status": 412}', '{"status": 413}', row=STATUS),
    *sent("refuse", '{"status": 415}', '{"status": 422}', row=STATUS),
    *sent("invalid", "{}"),
    *sent("missing", "{}"),
    *sent("unavailable", "{}"),
    *sent("broken", "{}", '{"kind": "key"}'),
    *sent("wrong_result", "{}", row="a result that is not what the method declares"),
    *sent("no_result", "{}"),
    *sent("without_annotation", '{"kind": "text"}', '{"kind": "none"}', '{"kind": "list"}'),
    *sent("without_annotation", '{"kind": "bytes"}', '{"kind": "object"}', '{"kind": "missing"}'),
    *sent("words", '{"text": "to be ör not"}', '{"text": ""}', '{"text": 1}', "{}"),
    *sent("words_async", '{"text": "to be ör not"}', '{"text": ""}', "{}"),
    *sent("events", '{"count": 2}', '{"count": 0}', '{"count": "a"}'),
    *sent("octet_stream", '{"count": 3}', '{"count": 0}'),
    *sent("one_number", '{"value": 5}'),
    *sent("one_token", '{"text": "ä"}'),
    *sent("fails_at_once", '{"text": "fine"}', '{"text": "bad"}'),
    *sent("add", '{"a": 1}', '{"a": 1, "b": 2}', is_task=True),
    *(
        each
        for verb in ("submit", "status", "retry")
        for each in sent("add", '{"a": 1}', is_task=True, verb=verb)
    ),
    *sent(
        "add",
        '{"a": 1}',
        is_task=True,
        verb="cancel",
        row="the cancellation of a task",
        since="1.4",
    ),
    *sent("add", '{"a": "x"}', "{", is_task=True),
    *sent("add", '{"a": "x"}', is_task=True, verb="submit"),
    *sent(
        "add", '{"a": []}', "{}", is_task=True, verb="submit", row="the submit of wrong arguments"
    ),
    *sent("add", '{"a": 1}', '{"a": "x"}', "{}"),
    *sent("echo", '{"value": {"ä": [1.0, 9007199254740993]}}', is_task=True),
    *sent("echo", '{"value": {}}'),
    *sent("failing", '{"said": "too late"}', is_task=True),
    *sent("failing", '{"said": "too late"}'),
    *sent("answered", "{}", is_task=True),
    *sent("answered", "{}"),
    *sent("squares", '{"numbers": [1, 2, 3]}', '{"numbers": []}', '{"numbers": ["a"]}', "{}"),
    *sent("squares", '{"numbers": [1, 2, 3, 4, 5, 6, 7, 8]}'),
    *sent("sums", '{"matrix": [[1, 2], [3, 4]]}', '{"matrix": [[1.5]]}', '{"matrix": "a"}'),
    *sent("lengths", '{"words": ["a", "ä"]}', '{"words": ["bad"]}'),
    *sent("v1/routed", "{}", '{"value": 1}', '{"value": "a"}'),
    *sent("deep/er/path.json", '{"value": 1}'),
    *sent("routed", "{}"),
    *sent("translated", '{"text": "hello"}', '{"text": "bye"}', "{}"),
    *sent("translated_async", '{"text": "hello"}'),
    *sent("known_words", "{}"),
    form("status", {"status": "201"}),
    form("words", {"text": "a b"}),
]
