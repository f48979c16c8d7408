"""Requests for the results."""

from __future__ import annotations

from .of_files import TEXT
from .requests import Request, form, sent, values, written


def kinds(name: str, *chosen: str, row: str = "", old_row: str | None = None) -> list[Request]:
    """The results of these kinds."""
    bodies = [f'{{"kind": "{each}"}}' for each in chosen]
    return sent(name, *bodies, row=row, old_row=old_row)


SERIALIZED = ["set", "tuple", "moments", "uuid", "nan", "huge", "float", "enum", "keys", "path"]
MADE = ["bytes", "decimal", "model", "models", "spot", "control", "empty", "none", "true", "nested"]
NUMPY = ["numpy", "numpy_integer", "numpy_array", "numpy_list"]
ODD = ["object", "exception", "complex"]
UNDECLARED = "a result that is not what the method declares"
SURROGATE = "half of a character in a text"
GENERATOR = "a generator as the result of Any"
LARGE = f"[{','.join(str(each / 7) for each in range(50_000))}]"

REQUESTS: list[Request] = [
    *kinds("any_result", *SERIALIZED, *MADE, *NUMPY, *ODD),
    *kinds("any_result", "surrogate", row=SURROGATE),
    *kinds("any_result", "generator", row=GENERATOR),
    *kinds("bare_result", *MADE, "numpy", "object", "tuple"),
    *kinds("mapping", *SERIALIZED, *MADE, *NUMPY, *ODD, "surrogate", "generator"),
    *kinds("text_result", "empty", "control"),
    *kinds("text_result", "none", "true", "huge", "set", row=UNDECLARED),
    *kinds("text_result", "surrogate", row=SURROGATE),
    *kinds("maybe_text", "empty", "control", "none"),
    *kinds("maybe_text", "true", row=UNDECLARED),
    *kinds("number_result", "numpy", "numpy_integer", "huge", "true"),
    *kinds("number_result", "none", "control", "spot", row=UNDECLARED),
    *kinds("list_result", "tuple", "set", "float", "nan", "numpy_array"),
    *kinds("list_result", "none", row=UNDECLARED),
    *kinds("list_result", "generator", row=GENERATOR),
    *kinds("model_result", "model", "none", "spot", "nested"),
    *sent("model_of_dict", '{"value": 1}'),
    *sent("models_result", '{"count": 2}', '{"count": 0}'),
    *values(
        "measured",
        '{"value": 1, "unit": 1, "raw": "ä", "other": [1.0]}',
        '{"value": "a", "unit": 2}',
    ),
    *values("measured", '{"value": NaN}', '{"value": 1, "publicName": "x", "public_name": "y"}'),
    *values("vector", '{"values": [1, 2]}', '{"values": [[1], [2, 3]]}', '{"values": "a"}', "{}"),
    *values("vectors", "[[1, 2], [1.5]]", "[]", "[1]", '["a"]', "1"),
    *values("by_key", '{"a": [1, 2]}', '{"a": "b"}', "{}"),
    *values("rows_in_model", '{"rows": [{"a": 1}]}', '{"rows": {"a": [1, 2]}}', '{"rows": 1}'),
    *values("small_integers", "[1, 255]", "[256]", "[-1]", "[1.7]"),
    *kinds(
        "array_result",
        "scalar",
        "empty",
        "bool",
        "text",
        "nan",
        "float32",
        "list",
        "complex",
        "object",
    ),
    *kinds("table_result", "empty", "mixed", "index", "times", "list"),
    *sent("typed_picture", "{}"),
    *sent("response_file", "{}"),
    *sent("response_stream", "{}"),
    *sent("response_cookies", "{}"),
    *sent("iterated", '{"count": 2}', '{"count": 0}'),
    *sent("returned_iterator", '{"text": "to be ör not"}', '{"text": ""}', '{"text": 1}'),
    *sent("returned_async_iterator", '{"text": "to be ör not"}', '{"text": "bad"}'),
    *sent("awaited_iterator", '{"count": 1}', '{"count": 0}'),
    *sent("awaited_generator", '{"text": "to be"}'),
    *sent("returned_bytes_iterator", '{"count": 3}'),
    *sent("typed_pieces", "{}"),
    *sent("mixed_pieces", "{}"),
    *sent("pieces_with_head", "{}"),
    *sent("many_pieces", '{"count": 3000}'),
    *sent("late_failure", "{}", row="a stream that fails on its way"),
    *sent("make_picture", '{"width": 2}', is_task=True),
    *sent("make_picture", '{"width": 2}', '{"width": "a"}'),
    form("count_bytes", written(factor=2), ("file", TEXT), is_task=True),
    form("count_bytes", written(factor=2), ("file", TEXT)),
    form("count_bytes", written(factor="a"), ("file", TEXT)),
    *sent("broken_task", "{}", is_task=True),
    *sent("broken_task", "{}"),
    *values("large", LARGE, LARGE.replace("[0.0", '["a"'), "[" + "1," * 200_000 + "1]"),
]
