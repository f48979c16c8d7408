"""GPT-2 (Radford et al., 2019) in numpy: the forward pass, for many texts at once.

The weights are those of Hugging Face's repositories: `config.json`, `model.safetensors` and
`tokenizer.json` in one folder.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

Floats = NDArray[np.float32]


@dataclass
class Text:
    """A text that is being written: what is new of it, and what its layers know of the rest."""

    new: list[int]
    """Tokens that no layer has seen yet."""
    length: int = 0
    """Tokens that all layers have seen."""
    past: list[tuple[Floats, Floats]] = field(default_factory=list)
    """Keys and values of each layer, `(heads, length, width of a head)`."""


class GPT2:
    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        self.heads: int = config["n_head"]
        self.layers: int = config["n_layer"]
        self.context: int = config["n_positions"]
        """The longest text, in tokens."""
        self.end: int = config["eos_token_id"]
        self.epsilon: float = config["layer_norm_epsilon"]
        weights = load_file(folder / "model.safetensors")
        self.weights = {
            name.removeprefix("transformer."): np.asarray(value, np.float32)
            for name, value in weights.items()
        }
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def forward(self, texts: list[Text]) -> Floats:
        """Reads what is new of each text; answers the scores of its next token, `(texts, tokens)`.

        Every matrix is applied to the rows of all texts at once; only attention looks at each
        text by itself, so that one of 3 tokens and one of 900 go together.
        """
        counts = [len(text.new) for text in texts]
        tokens = np.concatenate([text.new for text in texts])
        places = np.concatenate(
            [np.arange(text.length, text.length + count) for text, count in zip(texts, counts)]
        )
        ends = np.cumsum(counts)
        rows = self.weights["wte.weight"][tokens] + self.weights["wpe.weight"][places]
        for layer in range(self.layers):
            name = f"h.{layer}"
            mixed = self.linear(self.norm(rows, f"{name}.ln_1"), f"{name}.attn.c_attn")
            pieces = np.split(mixed, ends[:-1])
            seen = [self.attend(text, layer, piece) for text, piece in zip(texts, pieces)]
            rows = rows + self.linear(np.concatenate(seen), f"{name}.attn.c_proj")
            inner = gelu(self.linear(self.norm(rows, f"{name}.ln_2"), f"{name}.mlp.c_fc"))
            rows = rows + self.linear(inner, f"{name}.mlp.c_proj")
        for text, count in zip(texts, counts):
            text.length += count
            text.new = []
        return self.norm(rows[ends - 1], "ln_f") @ self.weights["wte.weight"].T

    def attend(self, text: Text, layer: int, mixed: Floats) -> Floats:
        """Causal attention of the new tokens of one text to themselves and to all before."""
        count = len(mixed)
        query, key, value = (
            part.reshape(count, self.heads, -1).transpose(1, 0, 2) for part in np.split(mixed, 3, 1)
        )
        if layer < len(text.past):
            old_key, old_value = text.past[layer]
            key = np.concatenate([old_key, key], 1)
            value = np.concatenate([old_value, value], 1)
            text.past[layer] = (key, value)
        else:
            text.past.append((key, value))
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(np.float32(query.shape[-1]))
        # Token i of the new ones sees all before them, and the new ones up to itself.
        hidden = np.triu(np.ones((count, key.shape[1]), bool), k=key.shape[1] - count + 1)
        scores = np.where(hidden, np.float32(-np.inf), scores)
        return (softmax(scores) @ value).transpose(1, 0, 2).reshape(count, -1)

    def linear(self, rows: Floats, name: str) -> Floats:
        return rows @ self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def norm(self, rows: Floats, name: str) -> Floats:
        centred = rows - rows.mean(-1, keepdims=True)
        scale = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(self.epsilon))
        return centred / scale * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def gelu(x: Floats) -> Floats:
    """The approximation by a hyperbolic tangent, with which GPT-2 was trained."""
    return np.float32(0.5) * x * (1 + np.tanh(np.float32(0.7978845608) * (x + 0.044715 * x**3)))


def softmax(scores: Floats) -> Floats:
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    return raised / raised.sum(-1, keepdims=True)
