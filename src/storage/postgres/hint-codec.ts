/**
 * The codec of hints in a notification: JSON of at most 7,900 bytes, because
 * Postgres takes less than 8,000. Hints that do not fit become one general
 * hint.
 */
import type { Hint } from "../notifier.ts";

/** Payload of one NOTIFY: Postgres takes less than 8,000 bytes. */
const MAX_NOTIFICATION_BYTES = 7_900;

/** Distinct hints per batch; beyond this, one general hint replaces them. */
const MAX_HINTS_PER_BATCH = 250;

/** Hints waiting to be sent, each once. */
export class HintBatch {
  readonly #hints = new Map<string, Hint>();
  #look = false;

  get isEmpty(): boolean {
    return this.#hints.size === 0 && !this.#look;
  }

  add(hint: Hint): void {
    if (hint.kind === "look" || this.#hints.size >= MAX_HINTS_PER_BATCH) {
      this.#look = true;
      this.#hints.clear();
    } else if (!this.#look) {
      this.#hints.set(Object.values(hint).join("/"), hint);
    }
  }

  /** Returns the batch as text and empties it. `from` identifies the sender. */
  take(from: string): string {
    const hints = [...this.#hints.values()];
    this.#hints.clear();
    this.#look = this.#look || hints.length === 0;
    const text = JSON.stringify({ from, hints: this.#look ? [LOOK] : hints });
    this.#look = false;
    return Buffer.byteLength(text) <= MAX_NOTIFICATION_BYTES
      ? text
      : JSON.stringify({ from, hints: [LOOK] });
  }
}

export const LOOK: Hint = { kind: "look" };

/**
 * Parses a notification; empty for this node's own, and one general hint when
 * it cannot be parsed.
 */
export function readHints(text: string, self: string): Hint[] {
  try {
    const { from, hints } = JSON.parse(text) as { from: unknown; hints: unknown };
    if (from === self) {
      return [];
    }
    return Array.isArray(hints) && hints.every(isHint) ? hints : [LOOK];
  } catch {
    // Another program, or a newer version, sent it.
    return [LOOK];
  }
}

function isHint(value: unknown): value is Hint {
  const { kind, taskId, deploymentId, endpoint } = Object(value) as Record<string, unknown>;
  switch (kind) {
    case "queued":
      return typeof deploymentId === "string" && typeof endpoint === "string";
    case "changed":
    case "abort":
      return typeof taskId === "string";
    default:
      return kind === "accounts" || kind === "look";
  }
}
