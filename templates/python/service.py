import re

from tessera import Context, api, service, task


def count_words(text: str) -> int:
    return len(re.findall(r"\w+", text))


@service(name="my-service")
class MyService:
    """Counts words."""

    @api
    def count(self, text: str) -> int:
        """Answers in the call."""
        return count_words(text)

    @task(timeout="10m", retries=2)
    def count_all(self, texts: list[str], ctx: Context) -> list[int]:
        """Is queued, and its result is stored until somebody fetches it."""
        counts = []
        for index, text in enumerate(texts):
            ctx.check()
            counts.append(count_words(text))
            ctx.progress((index + 1) / len(texts), f"{index + 1} of {len(texts)}")
        return counts
