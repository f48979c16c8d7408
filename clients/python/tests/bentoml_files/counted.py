"""A service that counts with ``bentoml.metrics``."""

import bentoml
from bentoml.metrics import Counter, Gauge, Histogram, Summary

words = Counter(name="words_total", documentation="Words that were read", labelnames=["lang"])
left = Gauge(name="left", documentation="Texts that are left")
score = Histogram(
    name="score",
    documentation="Scores of texts",
    labelnames=["endpoint"],
    buckets=(0.5, 1.0, float("inf")),
)
took = Summary(name="took_seconds", documentation="Time of a text")


@bentoml.service(workers=1)
class Counted:
    @bentoml.api
    def read(self, text: str) -> int:
        number = len(text.split())
        words.labels(lang="de").inc(number)
        left.set(number)
        score.labels(endpoint="read").observe(number / 4)
        took.observe(0.5)
        return number
