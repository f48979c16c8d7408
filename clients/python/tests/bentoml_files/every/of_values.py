"""Requests for the values: right ones, at their bounds, and wrong ones."""

from __future__ import annotations

from .requests import Request, sent, values

HUGE = "123456789012345678901234567890"
LONG = '"' + "ä" * 5000 + '"'

REQUESTS: list[Request] = [
    *values("integer", "1", "-5", '"1"', "1.0", "1.5", '"1.5"', "true", "null", "[]", '""', '"a"'),
    *values("integer", "9007199254740993", "18446744073709551616", HUGE, "1e3", "1e400", "NaN"),
    *values("integer", '" 7 "', '"1_000"', '"0x10"', "-0", "-0.0"),
    *values("number", "1", "1.0", "-0.0", "0.1", "1e400", "-1e400", "NaN", "Infinity", "1e-400"),
    *values("number", '"1.5"', '"nan"', '"inf"', "true", "null", '"a"', HUGE, "5e-324", "1e22"),
    *values("flag", "true", "false", "1", "0", "2", '"yes"', '"off"', '"T"', '"maybe"', "1.0"),
    *values("flag", "null"),
    *values("text", '"a"', '""', '"ä😀\\u0000"', '"\\ud83d\\ude00"', LONG, "1", "true", "null"),
    *values("text", '"a\\nb"', '"\\"quoted\\""', "[]", '"12"', '"null"'),
    *values("nothing", "null", "0", '"null"'),
    *values("optional", "1", "null", '"1"', '"a"'),
    *sent("optional", "{}", '{"other": 1}'),
    *values("either", "1", '"1"', '"a"', "1.5", "null", "true"),
    *values("choice", '"a"', '"b"', "3", '"3"', '"c"', "null", "3.0"),
    *values("color", '"red"', '"RED"', "1", "null"),
    *values("level", "1", "2", "3", '"1"', '"LOW"', "1.0"),
    *sent("level", "{}"),
    *values("moment", '"2026-01-02T03:04:05"', '"2026-01-02T03:04:05Z"', '"2026-01-02"'),
    *values("moment", '"2026-01-02T03:04:05.123456+02:00"', "0", "1767323045", "1767323045.5"),
    *values("moment", '"1767323045"', '"2026-02-30T00:00:00"', '"yesterday"', "null", "1e400"),
    *values("instant", '"2026-01-02T03:04:05Z"', '"2026-01-02T03:04:05"', "0"),
    *values("day", '"2026-01-02"', '"2026-01-02T00:00:00"', '"2026-01-02T01:00:00"', "86400", "1"),
    *values("day", '"2026-13-01"', '"02.01.2026"'),
    *values("hour", '"03:04:05"', '"03:04"', '"03:04:05.5+01:00"', "3600", '"25:00"', "-1"),
    *values("span", '"P1DT2H"', '"01:30:00"', "90", "1.5", '"3 days"', '"a"', '"-P1D"'),
    *values(
        "identity", '"6fa459ea-ee8a-3ca4-894e-db77e160355e"', '"6fa459eaee8a3ca4894edb77e160355e"'
    ),
    *values("identity", '"urn:uuid:6fa459ea-ee8a-3ca4-894e-db77e160355e"', '"6fa4"', "1"),
    *values("amount", '"1.10"', "1.10", "1", HUGE, '"1e5"', '"NaN"', "NaN", '"a"', "-0.0", "true"),
    *values("amount", "0.1000000000000000055511151231257827", "1e400"),
    *values("price", '"123.45"', '"1234.56"', '"1.234"', "1.5"),
    *values("octets", '"a"', '"ä"', '""', "1", "null"),
    *values(
        "anything", "1", "1.0", "-0.0", '"a"', "null", "[]", "{}", "true", HUGE, "1e22", "1e400"
    ),
    *values("anything", "NaN", '{"a": [1, {"b": null}]}', '"ä\\u2028"', "0.1", "1E5", "[[[[]]]]"),
    *values("untyped", "1", '"a"', "null", '{"a": 1, "a": 2}', '[1, "ä", 1.50]'),
    *values(
        "numbers", "[1, 2]", "[]", '["1", 2.0, true]', '[1, "a", null]', "1", "{}", "null", '"1"'
    ),
    *values("grid", "[[1, 2.5], []]", "[[NaN]]", "[[1], 2]", '[["a"]]'),
    *values("pair", '[1, "a"]', '["1", "a"]', "[1]", '[1, "a", 2]', "[]", '{"0": 1}'),
    *values("many", "[1, 2, 3]", "[]", '["a"]'),
    *values("members", "[3, 1, 1]", "[]", '[1, "1"]', "[[]]"),
    *values("letters", '["b", "a", "b"]', "[1]"),
    *values("line", "[1, 2]", '"12"'),
    *values("sequence", '["a", "b"]', '"ab"', "[1]", "{}"),
    *values("table_of", '{"a": 1}', "{}", '{"a": "1"}', '{"a": "b"}', '{"ä b": 2}', "[]"),
    *values(
        "table_of", '{"__proto__": 1, "constructor": 2}', '{"": 0}', '{"b": 1, "a": 2, "1": 3}'
    ),
    *values("keyed", '{"1": "a"}', '{"a": "b"}', '{"1.0": "c"}', '{"10": "a", "9": "b"}'),
    *values("movie", '{"title": "M", "year": 1931}', "{}", '{"title": 1}', '{"other": 1}'),
    *values("corner", "[1, 2]", "[1]", '{"x": 1}', '{"y": 1}', "[]"),
    *values("box", '{"width": 1}', '{"width": "a"}', '{"label": "b"}', '{"width": 1, "depth": 2}'),
    *values(
        "link", '"http://example.org"', '"HTTP://Example.org:80/a b"', '"example.org"', '"ftp://a"'
    ),
    *values("link", '"https://ä.example/?q=ä"'),
    *values("address", '"127.0.0.1"', '"::1"', '"300.0.0.1"', "2130706433"),
    *values("secret", '"hidden"', "1"),
    *values("inner", '"[1, 2]"', '"[1, \\"a\\"]"', '"["', "[1]"),
    *values("encoded", '"YWJj"', '"!"', '""', '"YWJ"'),
    *values("size", '"1KiB"', "1000", '"1.5MB"', '"a lot"', "-1"),
    *values("small", "2", "0", "10", "3", "4.0", '"6"'),
    *values("word", '"ab"', '"a"', '"abcde"', '"a b"', '"äö"', '"😀😀"', '"ab\\n"'),
    *values("trimmed", '"  ABC  "', '""', "1"),
    *values("few", "[1]", "[]", "[1, 2, 3, 4]", "[1, 2, 3]"),
    *values("earlier", '"2000-01-01"', '"2999-01-01"'),
    *values("strict", "1", '"1"', "1.0", "true"),
    *sent(
        "strict", '{"value": 1, "flag": 1}', '{"value": 1, "text": 1}', '{"value": 1, "flag": true}'
    ),
    *values("finite", "1", "NaN", "1e400", '"inf"'),
    *values("bounded", "0", "-1", "-0.0"),
    *sent("bounded", '{"value": 2, "by": 0}', '{"value": 2, "by": 0.5}', '{"value": -1, "by": -1}'),
    *values("before", '"a,b"', '["a"]', '""', "1"),
    *values("after", "2", '"a"', HUGE),
    *values("wrapped", '"none"', "3", '"3"', '"some"'),
    *sent("defaults", '{"a": 1}', '{"a": 1, "b": "x", "c": [1], "d": 2, "e": false}', '{"b": "x"}'),
    *sent("defaults", '{"a": 1, "c": null}', '{"a": 1, "b": null}', '{"a": 1, "zz": 1}', "{}"),
    *sent("defaults", '{"a": "x", "d": "y", "e": "z"}', '{"A": 1}', '{"a": 1, "a": 2}'),
    *sent("described", "{}", '{"value": 1}', '{"value": 0}'),
    *sent("no_arguments", "{}", "", '{"a": 1}', "[]", "null", '"a"'),
    *sent("named", '{"kwargs": {"a": 1}}', '{"first": 2, "kwargs": {}}'),
    *sent("named", '{"kwargs": {"a": "b"}}', row="a result that is not what the method declares"),
    *sent("named", '{"first": 2}', '{"a": 1, "kwargs": {}}'),
]
