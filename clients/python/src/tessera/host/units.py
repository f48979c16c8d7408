"""What a function reports that its call used, summed up until its end."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from .outbox import Outbox

MAX_UNITS_PER_CALL = 16
MAX_AMOUNT = 1e12
"""The most of a unit that one call may report: sums of it stay exact."""
COUNTED_BY_PLATFORM = frozenset(
    ("calls", "tasks", "run_seconds", "gpu_seconds", "bytes_in", "bytes_out")
)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}\Z")


def fault_of_unit(name: str, amount: Any) -> str | None:
    """Why a unit cannot be counted; None: it can."""
    if not _NAME.match(name):
        return "a name has a letter, and then up to 63 letters, digits and underscores"
    if name in COUNTED_BY_PLATFORM:
        return "the platform itself counts that"
    if number_of(amount) is None:
        return "an amount is a number from 0 to 1000000000000"
    return None


def number_of(amount: Any) -> float | None:
    """The amount, also of a number of NumPy; None for what is none."""
    try:
        number = float(amount)
    except Exception:  # What an object of a library raises is its own, as of a tensor of PyTorch.
        return None
    return number if not isinstance(amount, str) and 0 <= number <= MAX_AMOUNT else None


def _shown(amount: Any) -> str:
    try:
        return str(amount)[:100]
    except Exception:  # An integer of 5,000 digits has no text, and objects may raise.
        return type(amount).__name__


class UsageReport:
    """Nothing that a function reports fails it: what cannot be counted is left out, and said."""

    def __init__(self, call_id: int, outbox: Outbox, warn: Callable[[str], None]) -> None:
        self._id = call_id
        self._outbox = outbox
        self._warn = warn
        self._lock = threading.Lock()
        self._sums: dict[str, float] = {}
        self._warned = False
        self._closed = False

    def add(self, units: Mapping[str, Any]) -> None:
        with self._lock:
            if self._closed:
                return
            for name, amount in units.items():
                before = self._sums.get(name)
                fault = fault_of_unit(name, amount)
                total = (before or 0.0) + (number_of(amount) or 0.0)
                if fault is None and before is None and len(self._sums) == MAX_UNITS_PER_CALL:
                    fault = f"a call reports at most {MAX_UNITS_PER_CALL} units"
                fault = fault or fault_of_unit(name, total)
                if fault is None:
                    self._sums[name] = total
                elif not self._warned:
                    self._warned = True
                    what = f"{str(name)[:100]!r}: {_shown(amount)}"
                    self._warn(f"usage of {what} is not counted: {fault}")

    def close(self) -> None:
        """Sends the sums, and drops everything that comes later."""
        with self._lock:
            self._closed = True
            if self._sums:
                self._outbox.post({"type": "usage", "id": self._id, "units": self._sums})
                self._sums = {}
