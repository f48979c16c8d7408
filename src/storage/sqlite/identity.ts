import { statSync } from "node:fs";

/** How long an answer is good for: asking before every transaction would cost more than it tells. */
const CHECK_EVERY_MS = 100;

/**
 * Whether a path still leads to the file that was opened there. SQLite goes on
 * with a deleted file as if nothing had happened, and what it acknowledges
 * then is gone when the process ends.
 */
export class OpenedFile {
  readonly #path: string;
  readonly #identity: string | undefined;
  #checkedAtMs: number;

  constructor(path: string) {
    this.#path = path;
    this.#identity = identityOf(path);
    this.#checkedAtMs = performance.now();
  }

  /** True when the file was deleted, moved, or replaced by another. */
  get gone(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#checkedAtMs < CHECK_EVERY_MS) {
      return false;
    }
    this.#checkedAtMs = nowMs;
    return identityOf(this.#path) !== this.#identity;
  }
}

function identityOf(path: string): string | undefined {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return found && `${found.dev}/${found.ino}`;
}
