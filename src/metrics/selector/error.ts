/** What was asked for cannot be answered; the message says why. */
export class MatchError extends Error {}

/** One selector is wrong; the message says where and why, as Prometheus words it. */
export class SelectorError extends MatchError {
  constructor(text: string, at: number, reason: string) {
    const before = text.slice(0, at);
    const line = before.split("\n").length;
    // Prometheus counts bytes.
    const column = Buffer.byteLength(before.slice(before.lastIndexOf("\n") + 1)) + 1;
    super(`${line}:${column}: parse error: ${reason}`);
  }
}
