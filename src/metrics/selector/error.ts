/** Errors of federation queries. */

/** A query that cannot be answered; the message says why. */
export class MatchError extends Error {}

/** An invalid selector; the message says where and why, in Prometheus' wording. */
export class SelectorError extends MatchError {
  constructor(text: string, at: number, reason: string) {
    const before = text.slice(0, at);
    const line = before.split("\n").length;
    // Prometheus counts bytes.
    const column = Buffer.byteLength(before.slice(before.lastIndexOf("\n") + 1)) + 1;
    super(`${line}:${column}: parse error: ${reason}`);
  }
}
