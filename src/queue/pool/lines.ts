import type { Readable } from "node:stream";

/** Longer lines are cut: what a service writes must not fill the node's memory. */
const MAX_LINE = 8_192;

/** Calls back for each line of a stream of text. */
export function forEachLine(stream: Readable | null, onLine: (line: string) => void): void {
  let rest = "";
  stream?.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = (lines.pop() ?? "").slice(0, MAX_LINE);
    for (const line of lines) {
      onLine(line.slice(0, MAX_LINE));
    }
  });
}
