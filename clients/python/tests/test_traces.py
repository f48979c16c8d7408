"""The trace of a call, for services that use OpenTelemetry."""

from __future__ import annotations

import contextvars

import pytest

trace = pytest.importorskip("opentelemetry.trace")

from tessera.host.traces import enter_trace  # noqa: E402

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SPAN_ID = "b7ad6b7169203331"


def test_what_a_call_begins_has_its_span_as_the_parent() -> None:
    def within() -> tuple[int, int, str | None]:
        enter_trace(f"00-{TRACE_ID}-{SPAN_ID}-01 vendor=value")
        found = trace.get_current_span().get_span_context()
        return found.trace_id, found.span_id, found.trace_state.get("vendor")

    parent = contextvars.copy_context().run(within)
    assert parent == (int(TRACE_ID, 16), int(SPAN_ID, 16), "value")
    # It is that of one call, and of no other.
    assert not trace.get_current_span().get_span_context().is_valid
