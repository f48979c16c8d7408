/**
 * Hints as they travel in a notification: JSON of at most 7,900 bytes, since
 * Postgres takes less than 8,000. What does not fit becomes one general hint.
 */
import type { Hint } from "../notifier.ts";

const MAX_BYTES = 7_900;

/** Different hints of one batch; beyond them a general one says as much. */
const MAX_HINTS = 250;

/** Hints that wait to be sent, each once. */
export class HintBatch {
  readonly #hints = new Map<string, Hint>();
  #look = false;

  get isEmpty(): boolean {
    return this.#hints.size === 0 && !this.#look;
  }

  add(hint: Hint): void {
    if (hint.kind === "look" || this.#hints.size >= MAX_HINTS) {
      this.#look = true;
      this.#hints.clear();
    } else if (!this.#look) {
      this.#hints.set(Object.values(hint).join("/"), hint);
    }
  }

  /** The batch as text, and an empty batch from now on. `from` tells who sends it. */
  take(from: string): string {
    const hints = [...this.#hints.values()];
    this.#hints.clear();
    this.#look = this.#look || hints.length === 0;
    const text = JSON.stringify({ from, hints: this.#look ? [LOOK] : hints });
    this.#look = false;
    return Buffer.byteLength(text) <= MAX_BYTES ? text : JSON.stringify({ from, hints: [LOOK] });
  }
}

export const LOOK: Hint = { kind: "look" };

/** The hints of a notification; none of one's own, and a general one where it is not understood. */
export function readHints(text: string, self: string): Hint[] {
  try {
    const { from, hints } = JSON.parse(text) as { from: unknown; hints: unknown };
    if (from === self) {
      return [];
    }
    return Array.isArray(hints) && hints.every(isHint) ? hints : [LOOK];
  } catch {
    // Another program, or a newer version, uses the channel too.
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
