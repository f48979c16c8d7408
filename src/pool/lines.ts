/** Splits the output of a worker into lines, with a limit of length and, optionally, of rate. */
import type { Readable } from "node:stream";
import { ThrottledStream } from "./throttled-stream.ts";

/** Line of a service's output, cut beyond: what it writes must not fill the node's memory. */
const MAX_OUTPUT_LINE_CHARACTERS = 8_192;

/** Output read from a worker with limits. Beyond that the service waits when it writes. */
const OUTPUT_BYTES_PER_SECOND = 8 * 1024 * 1024;

/**
 * Calls back for each line of a text stream. Dispose of the returned throttle
 * when the process has ended.
 */
export function forEachLine(
  stream: Readable | null,
  onLine: (line: string) => void,
  options: { readonly throttled?: boolean } = {},
): Disposable | undefined {
  const throttle =
    stream && options.throttled ? new ThrottledStream(stream, OUTPUT_BYTES_PER_SECOND) : undefined;
  let rest = "";
  stream?.setEncoding("utf8").on("data", (chunk: string) => {
    throttle?.spend(chunk.length);
    const lines = (rest + chunk).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_OUTPUT_LINE_CHARACTERS);
    for (const line of lines) {
      onLine(line.slice(0, MAX_OUTPUT_LINE_CHARACTERS));
    }
  });
  return throttle;
}
