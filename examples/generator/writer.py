"""Writes many texts at a time, a token of each in every step (continuous batching)."""

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from gpt2 import GPT2, Floats, Text, softmax

MAX_TEXTS = 16
"""Texts of one step. Further ones wait until one of these has ended."""


@dataclass
class Order:
    """One text to write, and what is written of it so far."""

    text: Text
    left: int
    """Tokens that may still be written."""
    temperature: float
    chance: np.random.Generator
    written: list[int] = field(default_factory=list)
    pieces: "queue.SimpleQueue[str | Exception | None]" = field(default_factory=queue.SimpleQueue)
    """What the caller has not read yet; None at the end."""
    told: int = 0
    """Characters that are in `pieces`, or were."""
    is_given_up: bool = False


class Writer:
    """A thread that takes a step with all texts that are being written, for as long as there are any."""

    def __init__(self, model: GPT2) -> None:
        self.model = model
        self.orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self.largest_step = 0
        """Texts that were written together at most."""
        threading.Thread(target=self.run, daemon=True).start()

    def write(
        self, prompt: str, max_tokens: int, temperature: float, seed: int | None
    ) -> Iterator[str]:
        """Goes on with a text, a piece at a time; ends where the model ends, or with its context."""
        yield from self.pieces_of(self.begin(prompt, max_tokens, temperature, seed))

    def begin(self, prompt: str, max_tokens: int, temperature: float, seed: int | None) -> Order:
        """Begins to write a text; its pieces wait until somebody reads them."""
        tokens = self.model.tokenizer.encode(prompt).ids or [self.model.end]
        # The model sees so much of it that there is room for what it writes.
        tokens = tokens[-max(1, self.model.context - max_tokens) :]
        left = min(max_tokens, self.model.context - len(tokens))
        order = Order(Text(tokens), left, temperature, np.random.default_rng(seed))
        self.orders.put(order)
        return order

    def pieces_of(self, order: Order) -> Iterator[str]:
        """The pieces of a text as they are written. Who reads no more gives the text up."""
        try:
            while (piece := order.pieces.get()) is not None:
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        finally:
            order.is_given_up = True

    def run(self) -> None:
        current: list[Order] = []
        while True:
            while not current or (len(current) < MAX_TEXTS and not self.orders.empty()):
                current.append(self.orders.get())
            current = [order for order in current if not order.is_given_up]
            if not current:
                continue
            self.largest_step = max(self.largest_step, len(current))
            try:
                scores = self.model.forward([order.text for order in current])
                current = [
                    order for order, row in zip(current, scores) if not self.takes_last(order, row)
                ]
            except Exception as error:
                for order in current:
                    order.pieces.put(error)
                current = []

    def takes_last(self, order: Order, scores: Floats) -> bool:
        """Adds the next token of a text; answers whether that was the last."""
        token = choose(scores, order.temperature, order.chance)
        order.left -= 1
        is_last = order.left <= 0 or token == self.model.end
        if token != self.model.end:
            order.written.append(token)
            order.text.new = [token]
        text = self.model.tokenizer.decode(order.written)
        # A character of several bytes may come in several tokens: until its last one, it is unknown.
        while not is_last and text.endswith("\N{REPLACEMENT CHARACTER}"):
            text = text[:-1]
        if len(text) > order.told:
            order.pieces.put(text[order.told :])
            order.told = len(text)
        if is_last:
            order.pieces.put(None)
        return is_last


def choose(scores: Floats, temperature: float, chance: np.random.Generator) -> int:
    """The likeliest token at temperature 0; otherwise one by chance, as likely as it is."""
    if temperature == 0:
        return int(scores.argmax())
    likely = softmax(scores.astype(np.float64) / temperature)
    return int(chance.choice(len(likely), p=likely))
