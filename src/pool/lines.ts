import type { Readable } from "node:stream";
import { ThrottledStream } from "./throttled-stream.ts";

/** Longer lines are cut: what a service writes must not fill the node's memory. */
const MAX_LINE = 8_192;

/** With limits: what is read of it in a second at most. Beyond that the service waits when it writes. */
const PACE_BYTES = 8 * 1024 * 1024;

/** Calls back for each line of a stream of text. Dispose of the answer when the process has ended. */
export function forEachLine(
  stream: Readable | null,
  onLine: (line: string) => void,
  options: { readonly paced?: boolean } = {},
): Disposable | undefined {
  const pace = stream && options.paced ? new ThrottledStream(stream, PACE_BYTES) : undefined;
  let rest = "";
  stream?.setEncoding("utf8").on("data", (chunk: string) => {
    pace?.spend(chunk.length);
    const lines = (rest + chunk).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) {
      onLine(line.slice(0, MAX_LINE));
    }
  });
  return pace;
}
