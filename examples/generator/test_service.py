"""The service without a server: `python -m pytest examples/generator`. The weights are random."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from tessera.testing import Told, call_sync

from gpt2 import GPT2, Text
from make_weights import make
from service import Generator
from writer import MAX_TEXTS, Writer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("gpt2")
    make(made)
    return made


@pytest.fixture(autouse=True)
def models(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSERA_MODELS", json.dumps({"gpt2": str(folder)}))


def written(**arguments: object) -> str:
    pieces: Iterator[str] = call_sync(Generator.write, **arguments)
    return "".join(pieces)


def test_texts_that_are_read_together_have_the_scores_of_each_alone(folder: Path) -> None:
    model = GPT2(folder)
    texts = ["Ring the bell", "The", "half past eight. Ring"]
    tokens = [model.tokenizer.encode(text).ids for text in texts]
    together = [Text(each) for each in tokens]
    scores = model.forward(together)
    for each, row in zip(tokens, scores):
        assert np.allclose(model.forward([Text(list(each))])[0], row, atol=1e-4)
    # And token by token, with what the layers know of the rest.
    slow = Text(tokens[0][:1])
    model.forward([slow])
    for token in tokens[0][1:]:
        slow.new = [token]
        last = model.forward([slow])
    assert np.allclose(last[0], scores[0], atol=1e-4)


def test_writes_the_same_again_with_the_same_seed() -> None:
    order = {"prompt": "Ring the bell", "max_tokens": 20, "temperature": 1.0}
    assert written(**order, seed=3) == written(**order, seed=3)
    assert written(**order, seed=3) != written(**order, seed=4)
    assert written(**{**order, "temperature": 0}) == written(**{**order, "temperature": 0})


def test_goes_on_with_a_text_that_is_longer_than_its_context() -> None:
    assert written(prompt="The harbour office. " * 100, max_tokens=5, temperature=0)


def test_writes_many_in_their_order_and_tells_each() -> None:
    told = Told()
    order = {"max_tokens": 8, "temperature": 0.0}
    prompts = ["Ring", "The harbour", "half past"]
    texts = call_sync(Generator.write_all, prompts=prompts, told=told, **order)
    assert texts == [written(prompt=prompt, **order) for prompt in prompts]
    assert told.progress[-1] == (1.0, "text 3 of 3")


def test_texts_at_the_same_time_share_a_step(folder: Path) -> None:
    writer = Writer(GPT2(folder))
    orders = [writer.begin("Ring", 40, 1.0, number) for number in range(MAX_TEXTS + 4)]
    texts = ["".join(writer.pieces_of(order)) for order in orders]
    assert all(texts)
    assert 1 < writer.largest_step <= MAX_TEXTS


def test_a_text_that_nobody_reads_any_more_is_given_up(folder: Path) -> None:
    writer = Writer(GPT2(folder))
    pieces = writer.write("Ring", 100, 1.0, 1)
    next(pieces)
    pieces.close()
    # The thread goes on with others, and has only those.
    writer.largest_step = 0
    assert "".join(writer.write("The", 5, 0, None))
    assert "".join(writer.write("The", 5, 0, None))
    assert writer.orders.empty()
    assert writer.largest_step <= 2
