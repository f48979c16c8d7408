/**
 * Trace context (https://www.w3.org/TR/trace-context/) as one text: the W3C
 * `traceparent` and, after a space, the `tracestate` if present. This text is
 * stored with tasks and sent to workers; without a trace it is undefined.
 */

/** The request that a call or a task came with. */
export interface Origin {
  /** The caller's trace context; undefined without one. */
  readonly trace: string | undefined;
  readonly requestId: string;
  /** The token of the caller; undefined: they had none. */
  readonly tokenId?: string | undefined;
}

/** Version, trace, parent, flags; later versions may append more. */
const TRACEPARENT =
  /^(?!ff)([\da-f]{2})-((?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16})-([\da-f]{2})(-.*)?$/;

/**
 * Header `tracestate`: what every participant has to carry; a longer one is left out, as the
 * specification allows.
 */
const MAX_TRACESTATE_CHARACTERS = 512;

/**
 * Reads the trace context from headers. A malformed one counts as absent, so no
 * call fails because of it.
 */
export function readTrace(header: Pick<Headers, "get">): string | undefined {
  const traceparent = header.get("traceparent");
  if (traceparent === null) {
    return undefined;
  }
  const [, version, ids, flags = "00", more] = TRACEPARENT.exec(traceparent) ?? [];
  if (ids === undefined || (version === "00" && more !== undefined)) {
    return undefined;
  }
  const known = version === "00" ? traceparent : `00-${ids}-0${Number.parseInt(flags, 16) & 1}`;
  const tracestate = header.get("tracestate") ?? "";
  return isTracestate(tracestate) ? `${known} ${tracestate}` : known;
}

/** Splits a trace context into its two headers; the second may be empty. */
export function traceHeaders(trace: string): readonly [traceparent: string, tracestate: string] {
  const end = trace.indexOf(" ");
  return end === -1 ? [trace, ""] : [trace.slice(0, end), trace.slice(end + 1)];
}

/** The fields of a log line about a trace: its id, if present. */
export function loggedTrace(trace: string | undefined): { readonly traceId?: string } {
  return trace === undefined ? {} : { traceId: trace.slice(3, 35) };
}

/** Whether it is printable ASCII, which a header can carry again. */
function isTracestate(text: string): boolean {
  return /^[!-~][ -~]*$/.test(text) && text.length <= MAX_TRACESTATE_CHARACTERS;
}
