"""The trace of a call, for services that use OpenTelemetry."""

from __future__ import annotations

import sys


def enter_trace(trace: str) -> None:
    """Makes the call's span the parent of what its function begins, if OpenTelemetry is loaded."""
    if "opentelemetry" not in sys.modules:
        return
    try:
        from opentelemetry import context
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError:  # Another package of this name, or a part of it.
        return
    traceparent, _, tracestate = trace.partition(" ")
    carrier = {"traceparent": traceparent, "tracestate": tracestate}
    context.attach(TraceContextTextMapPropagator().extract(carrier))
