/**
 * Where a call stands in its caller's trace, as one text: the W3C
 * `traceparent`, and after a space the `tracestate` where there is one
 * (https://www.w3.org/TR/trace-context/). As such it is stored with a task and
 * sent to a worker; without a trace there is no text, and nothing to carry.
 */

/** Which request something came with. */
export interface Origin {
  /** Where it stands in its caller's trace, as a text; undefined: in none. */
  readonly trace: string | undefined;
  readonly requestId: string;
}

/** Version, trace, parent, flags; versions to come may add more. */
const TRACEPARENT =
  /^(?!ff)([\da-f]{2})-((?!0{32})[\da-f]{32}-(?!0{16})[\da-f]{16})-([\da-f]{2})(-.*)?$/;

/** What every participant has to carry; a longer one is left out, as the specification allows. */
const MAX_TRACESTATE_LENGTH = 512;

/** The trace that headers name. What is not well-formed is as good as absent: nobody's call fails by it. */
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

/** The two headers of a trace; the second is empty where there is none. */
export function traceHeaders(trace: string): readonly [traceparent: string, tracestate: string] {
  const end = trace.indexOf(" ");
  return end === -1 ? [trace, ""] : [trace.slice(0, end), trace.slice(end + 1)];
}

/** What a log line says of a trace: its id, where there is one. */
export function loggedTrace(trace: string | undefined): { readonly traceId?: string } {
  return trace === undefined ? {} : { traceId: trace.slice(3, 35) };
}

/** Printable ASCII, so that it can stand in a header again. */
function isTracestate(text: string): boolean {
  return /^[!-~][ -~]*$/.test(text) && text.length <= MAX_TRACESTATE_LENGTH;
}
