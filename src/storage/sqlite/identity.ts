/** Detects that an open database file was deleted, moved or replaced. */
import { statSync } from "node:fs";

/**
 * How long a check that the database file is still the same one holds: asking before every
 * transaction would cost more than it tells.
 */
const DATABASE_FILE_CHECK_INTERVAL_MS = 100;

/**
 * Checks whether a path still leads to the file that was opened there. SQLite
 * keeps working on a deleted file, and the commits that it acknowledges then
 * are lost when the process ends.
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

  /** True when the file was deleted, moved or replaced. */
  get gone(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#checkedAtMs < DATABASE_FILE_CHECK_INTERVAL_MS) {
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
