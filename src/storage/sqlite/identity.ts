/** Detects that an open database file was deleted, moved, replaced or cut short. */
import { statSync } from "node:fs";

/**
 * How long a check that the database file is still the same one holds: asking before every
 * transaction would cost more than it tells.
 */
const DATABASE_FILE_CHECK_INTERVAL_MS = 100;

/**
 * Checks whether a path still leads to the file that was opened there. SQLite
 * keeps working on a deleted file, and the commits that it acknowledges then
 * are lost when the process ends. And it works on a file that was cut short, which
 * it never does itself while it is open.
 */
export class OpenedFile {
  readonly #path: string;
  readonly #identity: string | undefined;
  #size: bigint;
  #checkedAtMs: number;

  constructor(path: string) {
    this.#path = path;
    const { identity, size } = lookAt(path);
    this.#identity = identity;
    this.#size = size;
    this.#checkedAtMs = performance.now();
  }

  /** What was done to the file; undefined: nothing. */
  get fault(): "deleted or replaced" | "cut short" | undefined {
    const nowMs = performance.now();
    if (nowMs - this.#checkedAtMs < DATABASE_FILE_CHECK_INTERVAL_MS) {
      return undefined;
    }
    this.#checkedAtMs = nowMs;
    const { identity, size } = lookAt(this.#path);
    if (identity !== this.#identity) {
      return "deleted or replaced";
    }
    const isShort = size < this.#size;
    this.#size = size;
    return isShort ? "cut short" : undefined;
  }
}

function lookAt(path: string): { readonly identity: string | undefined; readonly size: bigint } {
  const found = statSync(path, { bigint: true, throwIfNoEntry: false });
  return { identity: found && `${found.dev}/${found.ino}`, size: found?.size ?? 0n };
}
