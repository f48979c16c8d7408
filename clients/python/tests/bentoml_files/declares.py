"""A service that relies on what it declares: how many processes run it."""

from __future__ import annotations

import bentoml


@bentoml.service
class Declares:
    def __init__(self) -> None:
        self.texts: list[str] = []

    @bentoml.api
    def keep(self, text: str) -> int:
        self.texts.append(text)
        return len(self.texts)
