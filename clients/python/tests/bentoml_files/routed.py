"""A service that gives its methods paths, some of them the names of others."""

import bentoml


@bentoml.service
class Routed:
    @bentoml.api(route="/v1/predict")
    def predict(self, x: int) -> str:
        return f"old {x}"

    @bentoml.api(route="/predict")
    def predict_v2(self, x: int) -> str:
        return f"new {x}"

    @bentoml.task(route="/v1/job")
    def job(self, x: int) -> str:
        return f"old job {x}"

    @bentoml.task(route="/job")
    def job_v2(self, x: int) -> str:
        return f"new job {x}"

    @bentoml.task(route="/")
    def root(self, x: int) -> str:
        return f"root {x}"

    @bentoml.api(route="/api/v1/score")
    def score(self, x: int) -> str:
        return f"score {x}"

    @bentoml.api(route="/metrics/daily")
    def daily(self, x: int) -> str:
        return f"daily {x}"

    @bentoml.api(route="/v1/model:predict")
    def verb(self, x: int) -> str:
        return f"verb {x}"

    @bentoml.api(route="/v1.0")
    def version(self, x: int) -> str:
        return f"version {x}"

    @bentoml.api(route="/v1/submit")
    def word(self, x: int) -> str:
        return f"word {x}"

    @bentoml.api(route="/größe")
    def size(self, x: int) -> str:
        return f"size {x}"

    @bentoml.api
    def _hidden(self, x: int) -> str:
        return f"hidden {x}"

    @bentoml.api
    def länge(self, x: int) -> str:
        return f"length {x}"

    @bentoml.api(route="/with a space")
    def space(self, x: int) -> str:
        return f"space {x}"

    @bentoml.api(route="/empty//segment")
    def empty(self, x: int) -> str:
        return f"empty {x}"

    @bentoml.task(route='/100% "odd" <|>^`[1]')
    def odd(self, x: int) -> str:
        return f"odd {x}"

    @bentoml.api(route="/a%20b")
    def escaped(self, x: int) -> str:
        return f"escaped {x}"

    @bentoml.api(route="/slash/")
    def slash(self, x: int) -> str:
        return f"slash {x}"

    @bentoml.api(route=f"/{'long' * 30}")
    def long(self, x: int) -> str:
        return f"long {x}"

    @bentoml.api
    def plain(self, x: int) -> str:
        return f"plain {x}"
