"""Makes a tiny GPT-2 with random weights, for tests: ``python make_weights.py FOLDER``.

It writes nonsense, by the same code as the real one: `config.json`, `model.safetensors` and
`tokenizer.json`, as the repositories of Hugging Face have them.
"""

import json
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

LEARNT = ["The harbour office opens at half past eight.", "Ring the bell twice, and wait."]
END = "<|endoftext|>"
LAYERS, HEADS, WIDTH, CONTEXT = 2, 4, 32, 128


def make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=[END], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(LEARNT * 4, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    vocabulary = tokenizer.get_vocab_size()
    chance = np.random.default_rng(1)

    def drawn(*shape: int) -> np.ndarray:
        return chance.normal(0, 0.2, shape).astype(np.float32)

    weights = {"wte.weight": drawn(vocabulary, WIDTH), "wpe.weight": drawn(CONTEXT, WIDTH)}
    shapes = {"attn.c_attn": 3 * WIDTH, "attn.c_proj": WIDTH, "mlp.c_fc": 4 * WIDTH}
    for layer in range(LAYERS):
        for name, width in shapes.items():
            weights[f"h.{layer}.{name}.weight"] = drawn(WIDTH, width)
            weights[f"h.{layer}.{name}.bias"] = drawn(width)
        weights[f"h.{layer}.mlp.c_proj.weight"] = drawn(4 * WIDTH, WIDTH)
        weights[f"h.{layer}.mlp.c_proj.bias"] = drawn(WIDTH)
        for name in ("ln_1", "ln_2"):
            weights[f"h.{layer}.{name}.weight"] = np.ones(WIDTH, np.float32)
            weights[f"h.{layer}.{name}.bias"] = drawn(WIDTH)
    weights["ln_f.weight"], weights["ln_f.bias"] = np.ones(WIDTH, np.float32), drawn(WIDTH)
    save_file(weights, folder / "model.safetensors")
    config = {
        "model_type": "gpt2",
        "n_layer": LAYERS,
        "n_head": HEADS,
        "n_embd": WIDTH,
        "n_positions": CONTEXT,
        "vocab_size": vocabulary,
        "layer_norm_epsilon": 1e-5,
        "eos_token_id": tokenizer.token_to_id(END),
    }
    (folder / "config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
