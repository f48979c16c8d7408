"""Writes texts with GPT-2, a token of each in every step. Its weights come from `models`."""

from collections.abc import Iterator
from typing import Annotated

from gpt2 import GPT2
from pydantic import Field
from tessera import Context, api, counter, model_path, service, task
from writer import Writer

MAX_PROMPTS = 100
MAX_PROMPT_CHARACTERS = 20_000
MAX_TOKENS = 512

Prompt = Annotated[str, Field(max_length=MAX_PROMPT_CHARACTERS)]
Tokens = Annotated[int, Field(ge=1, le=MAX_TOKENS)]
Temperature = Annotated[
    float, Field(ge=0, le=2, description="0: always the likeliest token. 1: as the model has it.")
]

texts_written = counter("generator_texts_written", help="Texts that were written to their end.")


@service(
    name="generator", metrics=[texts_written], models={"gpt2": "hf://openai-community/gpt2"}
)
class Generator:
    """Goes on with texts, as GPT-2 would."""

    def setup(self) -> None:
        self.writer = Writer(GPT2(model_path("gpt2")))

    @api(timeout="5m", concurrency=64)
    def write(
        self,
        prompt: Prompt,
        max_tokens: Tokens = 64,
        temperature: Temperature = 0.8,
        seed: int | None = None,
    ) -> Iterator[str]:
        """Goes on with a text, a piece at a time. Calls at the same time share each step."""
        yield from self.writer.write(prompt, max_tokens, temperature, seed)
        texts_written.inc()

    @task(timeout="1h", retries=2)
    def write_all(
        self,
        prompts: Annotated[list[Prompt], Field(min_length=1, max_length=MAX_PROMPTS)],
        ctx: Context,
        max_tokens: Tokens = 64,
        temperature: Temperature = 0.8,
        seed: int | None = None,
    ) -> list[str]:
        """Goes on with many texts, in their order, and tells how many are written."""
        begun = [self.writer.begin(prompt, max_tokens, temperature, seed) for prompt in prompts]
        written = []
        try:
            for number, order in enumerate(begun, 1):
                text = ""
                for piece in self.writer.pieces_of(order):
                    ctx.check()
                    text += piece
                written.append(text)
                texts_written.inc()
                ctx.progress(number / len(prompts), f"text {number} of {len(prompts)}")
        finally:
            for order in begun:
                order.is_given_up = True
        return written
