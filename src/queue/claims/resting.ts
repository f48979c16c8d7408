/**
 * Resting keys of one endpoint: more keys have tasks waiting than one claim looks at, and none to start.
 * To go round all of them again and again would be polling. So they are looked at once, in parts, and
 * from then on only those of which something was heard: a task of the key has come or is due, one has
 * ended, or a start has left the window of its rate, which the storage finds by its time.
 *
 * All are looked at again, in parts, when something has come and nobody says of which key. Maintenance
 * has one part looked at each time, which finds what hints have lost, and when the keys are few again.
 */
import { LOOK_ON_MS } from "../../storage/claims-by-key.ts";

/** Keys that one claim names. */
const MAX_KEYS_NAMED = 200;
/** Keys that are remembered for the next claims; beyond these, all are looked at. */
const MAX_KEYS_TOLD = 10_000;
/**
 * How often claims have to come past the last key until all were looked at: they begin anywhere, and
 * those of other nodes go on from where these have got to.
 */
const MIN_ROUNDS = 2;

/** What a claim is to look at: these keys, or a part of all. */
export type LookAt = readonly string[] | "part";

/** What a claim has found that was to look at something. */
interface Answer {
  readonly look: LookAt;
  /** It gave as many tasks as were asked for. */
  readonly isFull: boolean;
  /** As of `LaterClaim`. */
  readonly cut: "on" | "around" | undefined;
  /** The keys of the tasks that it gave. */
  readonly started: readonly string[];
  /** The keys of tasks that it found due. */
  readonly due: readonly string[];
}

export class RestingKeys {
  readonly #told = new Set<string>();
  #rounds = MIN_ROUNDS;
  /** A part is to be looked at. */
  #isPartDue = false;
  #lastLook: LookAt = "part";

  /** Whether a claim is to follow at once. */
  get isLookDue(): boolean {
    return this.#told.size > 0 || this.#isPartDue;
  }

  /** Tasks of these keys may start. Without keys: of any. */
  tell(keys: readonly string[] | undefined): void {
    if (keys === undefined || this.#told.size + keys.length > MAX_KEYS_TOLD) {
      this.#rounds = MIN_ROUNDS;
      this.#isPartDue = true;
      return;
    }
    for (const key of keys) {
      this.#told.add(key);
    }
  }

  /** A part of all keys is to be looked at. */
  lookOn(): void {
    this.#isPartDue = true;
  }

  /** What the next claim looks at: keys and parts take turns, so that neither waits for the other. */
  next(): LookAt {
    const isPart = this.#isPartDue && (this.#told.size === 0 || this.#lastLook !== "part");
    if (isPart) {
      this.#isPartDue = false;
      this.#lastLook = "part";
    } else {
      const keys = [...this.#told].slice(0, MAX_KEYS_NAMED);
      for (const key of keys) {
        this.#told.delete(key);
      }
      this.#lastLook = keys;
    }
    return this.#lastLook;
  }

  /** A claim was not answered: what it was to look at is for the next one. */
  failed(look: LookAt): void {
    if (look === "part") {
      this.#isPartDue = true;
    } else {
      this.tell(look);
    }
  }

  /**
   * A claim was answered. Returns after how long the next part is to be looked at; undefined: not by
   * time. "none": no keys rest that it has not looked at.
   */
  answered({ look, isFull, cut, started, due }: Answer): number | "none" | undefined {
    this.tell(due);
    if (isFull) {
      // It did not look at all, and those that it found may have more: these come last.
      const isStarted = new Set(started);
      this.tell(look === "part" ? [] : look.filter((key) => !isStarted.has(key)));
      this.tell(started);
      this.#isPartDue ||= look === "part";
      return undefined;
    }
    if (look !== "part") {
      return undefined;
    }
    if (cut === undefined) {
      return "none";
    }
    this.#rounds -= cut === "around" && this.#rounds > 0 ? 1 : 0;
    return this.#rounds > 0 ? LOOK_ON_MS : undefined;
  }
}
