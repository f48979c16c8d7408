"""Custom metrics: ``counter``, ``gauge`` and ``histogram``.

Recording adds to a number in memory. The host sends the changes to the node once a second, and
before the results of ended calls, so that the counts of a finished call are never lost. An
invalid value or too many series do not fail the call: monitoring must not break what it watches.
"""

from __future__ import annotations

import math
import re
import sys
import threading
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, Literal

from .context import current_call
from .executable import ServiceError
from .unknown import known_options

MAX_METRICS = 50
MAX_LABELS = 5
MAX_BUCKETS = 50
MAX_NAME_CHARACTERS = 100
MAX_HELP_CHARACTERS = 1_000
MAX_LABEL_VALUE_CHARACTERS = 200
MAX_SERIES_PER_METRIC = 2_000

DEFAULT_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds, as Prometheus' own libraries have them."""

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_RESERVED_METRICS = re.compile(r"tessera_|process_|scrape_|up$|ALERTS")
_RESERVED_LABELS = frozenset(
    ["organization", "deployment", "endpoint", "node", "instance", "job", "le", "quantile"]
)

_lock = threading.Lock()
_declared: list[Metric] = []
_changed: dict[_Series, None] = {}
_dropped: dict[str, int] = {}


class _Series:
    """One combination of label values."""

    __slots__ = ("counts", "endpoint", "labels", "metric", "value")

    def __init__(self, metric: Metric, endpoint: str | None, labels: tuple[str, ...]) -> None:
        self.metric = metric
        self.endpoint = endpoint
        self.labels = labels
        self.value = 0.0
        self.counts: list[int] | None = None


class Metric:
    """A metric, with its series in this worker."""

    kind = ""

    def __init__(self, name: str, about: str | None, labels: Sequence[str]) -> None:
        self.name = name
        self.help = about if about is not None else name.replace("_", " ")
        self.labels = tuple(labels)
        self._check()
        self._series: dict[tuple[str | None, tuple[str, ...]], _Series] = {}
        self._complained = False
        _declared.append(self)

    def manifest(self) -> dict[str, Any]:
        """As ``MetricManifest`` of the node has it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "help": self.help,
            "labels": list(self.labels),
        }

    def _find(self, endpoint: str | None, labels: dict[str, Any]) -> _Series | None:
        """The series with these labels; None for wrong labels or too many series."""
        values = []
        for name in self.labels:
            value = labels.pop(name, None)
            if not isinstance(value, (str, int, float)):
                self._complain(f"the label {name} must be given, as a string or a number")
                return None
            values.append(str(value)[:MAX_LABEL_VALUE_CHARACTERS])
        if labels:
            self._complain(f"it declares no label {next(iter(labels))!r}")
            return None
        key = (endpoint, tuple(values))
        series = self._series.get(key)
        if series is None:
            if len(self._series) >= MAX_SERIES_PER_METRIC:
                _dropped[self.name] = _dropped.get(self.name, 0) + 1
                return None
            series = self._series[key] = _Series(self, *key)
        return series

    def _become(self, series: _Series, value: float) -> bool:
        """Sets a new value; False where the sum is too large for a number."""
        if not self._is_finite(value):
            return False
        series.value = value
        _changed[series] = None
        return True

    def _is_finite(self, value: object) -> bool:
        if isinstance(value, (int, float)) and math.isfinite(value):
            return True
        self._complain(f"it counts finite numbers, not {value!r:.100}")
        return False

    def _complain(self, fault: str) -> None:
        """Reports only once: a mistake in a loop must not fill the log."""
        if not self._complained:
            self._complained = True
            print(
                f"metric {self.name}: {fault}; this was not counted, "
                "and more of it is not reported",
                file=sys.stderr,
            )

    def _check(self) -> None:
        place = f"metric {self.name!r}"
        if not _NAME.fullmatch(self.name) or len(self.name) > MAX_NAME_CHARACTERS:
            raise ServiceError(
                f"{place} must have a name of letters, digits and _, "
                f"not beginning with a digit, at most {MAX_NAME_CHARACTERS}"
            )
        if _RESERVED_METRICS.match(self.name):
            raise ServiceError(
                f"{place} has a name of the platform or of Prometheus "
                "(tessera_…, process_…, scrape_…, up, ALERTS…); choose another"
            )
        if not 0 < len(self.help.strip()) <= MAX_HELP_CHARACTERS:
            raise ServiceError(f"{place} needs help of at most {MAX_HELP_CHARACTERS} characters")
        if len(self.labels) > MAX_LABELS or len(set(self.labels)) < len(self.labels):
            raise ServiceError(f"{place} may have {MAX_LABELS} labels, each of them once")
        for label in self.labels:
            if not _NAME.fullmatch(label) or label.startswith("__"):
                raise ServiceError(f"{place} has a label {label!r}, which is no name")
            if label in _RESERVED_LABELS:
                raise ServiceError(
                    f"{place} has a label {label}, which the platform or Prometheus sets itself; "
                    "choose another"
                )
        if any(each.name == self.name for each in _declared):
            raise ServiceError(f"{place} is declared twice")


class Counter(Metric):
    """A number that only goes up."""

    kind = "counter"

    def inc(self, amount: float = 1, **labels: str | int | float) -> None:
        """Adds to the number, for the endpoint whose call is under way."""
        if not self._is_finite(amount) or amount < 0:
            if amount < 0:
                self._complain("a counter only goes up: it cannot add a negative amount")
            return
        with _lock:
            series = self._find(_endpoint(), labels)
            if series is not None:
                self._become(series, series.value + amount)


class Gauge(Metric):
    """A number that goes up and down. It belongs to the worker, not to an endpoint."""

    kind = "gauge"

    def __init__(
        self, name: str, about: str | None, labels: Sequence[str], aggregator: str
    ) -> None:
        super().__init__(name, about, labels)
        self.aggregator = aggregator

    def manifest(self) -> dict[str, Any]:
        return {**super().manifest(), "aggregator": self.aggregator}

    def set(self, value: float, **labels: str | int | float) -> None:
        """Sets the number."""
        self._change(value, labels, relative=False)

    def inc(self, amount: float = 1, **labels: str | int | float) -> None:
        """Adds to the number."""
        self._change(amount, labels, relative=True)

    def dec(self, amount: float = 1, **labels: str | int | float) -> None:
        """Takes from the number."""
        self._change(-amount, labels, relative=True)

    def _change(self, value: float, labels: dict[str, Any], *, relative: bool) -> None:
        if not self._is_finite(value):
            return
        with _lock:
            series = self._find(None, labels)
            if series is not None:
                self._become(series, series.value + value if relative else value)


class Histogram(Metric):
    """How values are distributed over buckets."""

    kind = "histogram"

    def __init__(
        self, name: str, about: str | None, labels: Sequence[str], buckets: Sequence[float]
    ) -> None:
        super().__init__(name, about, labels)
        self.buckets = [float(bound) for bound in buckets]
        rising = all(low < high for low, high in zip(self.buckets, self.buckets[1:], strict=False))
        if not 0 < len(buckets) <= MAX_BUCKETS or not rising or not _all_finite(self.buckets):
            _declared.remove(self)
            raise ServiceError(
                f"metric {name!r} needs 1 to {MAX_BUCKETS} buckets, finite and rising; "
                "+Inf comes by itself"
            )

    def manifest(self) -> dict[str, Any]:
        return {**super().manifest(), "buckets": self.buckets}

    def observe(self, value: float, **labels: str | int | float) -> None:
        """Counts a value, for the endpoint whose call is under way."""
        if not self._is_finite(value):
            return
        with _lock:
            series = self._find(_endpoint(), labels)
            if series is not None and self._become(series, series.value + value):
                if series.counts is None:
                    series.counts = [0] * (len(self.buckets) + 1)
                series.counts[bisect_left(self.buckets, value)] += 1


@known_options("counter()")
def counter(
    name: str,
    help: str | None = None,  # noqa: A002
    labels: Sequence[str] = (),
) -> Counter:
    """Declares a number that only goes up: ``seen.inc(lang="de")``."""
    return Counter(name, help, labels)


@known_options("gauge()")
def gauge(
    name: str,
    help: str | None = None,  # noqa: A002
    labels: Sequence[str] = (),
    *,
    aggregator: Literal["sum", "min", "max", "average"] = "sum",
) -> Gauge:
    """Declares a number that goes up and down: ``loaded.set(3)``.

    ``aggregator`` is how the values of several workers become one.
    """
    return Gauge(name, help, labels, aggregator)


@known_options("histogram()")
def histogram(
    name: str,
    help: str | None = None,  # noqa: A002
    labels: Sequence[str] = (),
    *,
    buckets: Sequence[float] = DEFAULT_BUCKETS,
) -> Histogram:
    """Declares a distribution: ``seconds.observe(0.2)``. ``buckets`` are upper bounds."""
    return Histogram(name, help, labels, buckets)


def declared(metrics: Sequence[object] | None, place: str) -> list[dict[str, Any]]:
    """The manifests of a service's metrics; without a list, of all that were declared."""
    chosen = _declared if metrics is None else metrics
    if not isinstance(chosen, Sequence):
        raise ServiceError(f"{place}: metrics must be a list of them, such as [{chosen!r}]")
    if len(chosen) > MAX_METRICS:
        raise ServiceError(
            f"{place}: {len(chosen)} metrics are declared, and at most {MAX_METRICS} may be; "
            "make one with labels of those that are alike"
        )
    for each in chosen:
        if not isinstance(each, Metric):
            raise ServiceError(
                f"{place}: metrics must be made by counter(), gauge() or histogram(), not {each!r}"
            )
    return [each.manifest() for each in chosen if isinstance(each, Metric)]


def take_changes() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The changes since the last time, and the events that were dropped.

    As ``MetricChange`` and ``DroppedEvents`` of the node have them.
    """
    if not _changed and not _dropped:
        return [], []
    with _lock:
        changes = [_take(series) for series in _changed]
        dropped = [{"metric": name, "events": events} for name, events in _dropped.items()]
        _changed.clear()
        _dropped.clear()
    return changes, dropped


def _take(series: _Series) -> dict[str, Any]:
    """The change of a series, which is reset; a gauge keeps its value."""
    change: dict[str, Any] = {
        "metric": series.metric.name,
        "labels": series.labels,
        "value": series.value,
    }
    if series.endpoint is not None:
        change["endpoint"] = series.endpoint
    if series.counts is not None:
        change["counts"] = series.counts
        series.counts = None
    if not isinstance(series.metric, Gauge):
        series.value = 0.0
    return change


def _endpoint() -> str | None:
    call = current_call.get()
    return None if call is None else call.endpoint


def _all_finite(numbers: Sequence[float]) -> bool:
    return all(math.isfinite(number) for number in numbers)
