/**
 * A rate limit of hints to other nodes: those that pieces of a task are stored. The first of a
 * task goes out at once, the next ones together once in an interval, so that many streams do not
 * crowd out the hints of tasks.
 */

/** Least time between two hints of one task. */
const PIECE_HINT_INTERVAL_MS = 100;

export class PieceHints implements Disposable {
  readonly #send: (taskId: string) => void;
  /** Tasks hinted at in this interval. */
  #sent = new Set<string>();
  /** Those of them that have got pieces since. */
  readonly #waiting = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(send: (taskId: string) => void) {
    this.#send = send;
  }

  add(taskId: string): void {
    if (this.#sent.has(taskId)) {
      this.#waiting.add(taskId);
      return;
    }
    this.#sent.add(taskId);
    this.#send(taskId);
    this.#timer ??= setTimeout(() => this.#next(), PIECE_HINT_INTERVAL_MS).unref();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #next(): void {
    this.#timer = undefined;
    this.#sent = new Set();
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const taskId of waiting) {
      this.add(taskId);
    }
  }
}
