"""What a function reports that its call used."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tessera.host.outbox import Outbox
from tessera.host.units import UsageReport


class Tensor:
    """As one of PyTorch with several elements."""

    def __float__(self) -> float:
        raise RuntimeError("a tensor with 2 elements is no number")

    def __str__(self) -> str:
        raise RuntimeError("it is on a GPU that was lost")


DIGITS = pytest.param(10**5_000, id="5,000 digits")


@pytest.mark.parametrize("amount", ["12", None, -1, 1e13, float("nan"), DIGITS, Tensor()])
def test_that_cannot_be_counted_fails_no_call(amount: Any) -> None:
    lines: list[str] = []
    posted: list[Any] = []

    class Posted:
        post = posted.append

    report = UsageReport(1, cast(Outbox, Posted()), lines.append)
    report.add({"odd": amount, "tokens": 2})
    report.close()
    assert posted == [{"type": "usage", "id": 1, "units": {"tokens": 2.0}}]
    assert len(lines) == 1 and lines[0].endswith("an amount is a number from 0 to 1000000000000")
