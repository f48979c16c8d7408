/**
 * Where new tasks go. The id of a task says its cell, so this is decided before the id is made.
 *
 * - A retry goes to the cell of its task, whose arguments and webhook it has.
 * - A task with a key goes where the hash of that key says (rendezvous hashing), so that what shares a key
 *   is counted and found in one database: the key of who shares the endpoint, or else the idempotency key.
 * - Any other goes to the next cell that answers.
 *
 * What is fired by a schedule stays at home, where the schedule is: its id is made without this.
 *
 * With a further cell, some keys have another place than before. A task with an idempotency key is looked
 * for in the earlier places first. For nodes to agree on what is earlier, a new cell takes tasks with
 * keys from a time on that home has (`keyed_from_ms`), one that is closed takes none from another on
 * (`closed_from_ms`), and a node that has not read the cells from home for some seconds takes none with keys.
 * For half a minute from then on, idempotency keys with another place are refused.
 */
import { createHash } from "node:crypto";
import { cellOfTaskId, HOME_CELL } from "../../tasks/id.ts";
import { prepared } from "../postgres/session.ts";
import type { Placing } from "../storage.ts";
import { unavailable } from "../unavailable.ts";
import type { KnownCell } from "./identity.ts";

/**
 * How long a task may be on its way to a place that keys have left: longer than a submit may take. In this
 * time a key whose place has changed is refused, so that none is stored twice.
 */
export const KEYS_SETTLE_MS = 30_000;

/** What a placement asks of the databases. */
export interface Places {
  /** The cells that are known, those that have taken tasks with keys for longest first, and the time at home. */
  known(): { readonly cells: readonly KnownCell[]; readonly nowMs: number };
  /** The numbers of the cells that answer, and are not closed. Throws where that is not known. */
  reachable(): readonly number[];
  /** Whether a key may be held at home, by a task from before there were cells. */
  readonly homeHasKeys: boolean;
  /** Whether a cell has a task with this key. */
  holds(cell: number, key: KeyOfTask): Promise<boolean>;
}

/** An idempotency key of an endpoint. */
export interface KeyOfTask {
  readonly deploymentId: string;
  readonly endpoint: string;
  readonly key: string;
}

export const HOLDS = prepared(
  "holds_key",
  `SELECT EXISTS (SELECT FROM idempotency_keys
     WHERE deployment_id = $1 AND endpoint = $2 AND key = $3) AS held`,
);

/** Says where tasks go, one after the other. */
export class CellPlacement {
  readonly #places: Places;
  #next = 0;

  constructor(places: Places) {
    this.#places = places;
  }

  async place({ deploymentId, endpoint, key, idempotencyKey, retryOf }: Placing): Promise<number> {
    if (retryOf !== undefined) {
      return cellOfTaskId(retryOf);
    }
    const sharedKey = key ?? idempotencyKey;
    if (sharedKey !== undefined) {
      const text = JSON.stringify([deploymentId, endpoint, sharedKey]);
      return idempotencyKey === undefined
        ? chosen(this.#takers(), text)
        : this.#placeOnce(text, { deploymentId, endpoint, key: idempotencyKey });
    }
    const reachable = this.#places.reachable();
    this.#next = (this.#next + 1) % Math.max(reachable.length, 1);
    return reachable[this.#next] ?? HOME_CELL;
  }

  /** The cell that the text chooses, or the one where the idempotency key was stored earlier. */
  async #placeOnce(text: string, key: KeyOfTask): Promise<number> {
    const { cells, nowMs } = this.#places.known();
    const placeAmong = (some: readonly KnownCell[]): number => chosen(numbersOf(some), text);
    const place = placeAmong(takersAt(cells, nowMs));
    /** Places before this one, with the time from which nothing goes there any more. */
    const earlier = new Map<number, number>();
    for (const changedAtMs of changesUntil(cells, nowMs)) {
      const before = takersAt(cells, changedAtMs - 1);
      if (before.length > 0 || this.#places.homeHasKeys) {
        earlier.set(placeAmong(before), changedAtMs);
      }
    }
    for (const { number, isEmptied } of cells) {
      if (isEmptied) {
        earlier.delete(number);
      }
    }
    earlier.delete(place);
    for (const [cell, untilMs] of earlier) {
      if (nowMs < untilMs + KEYS_SETTLE_MS) {
        const message =
          "a cell was added or closed, and tasks with this key may be on their way to another";
        throw unavailable(new Error(message));
      }
      if (await this.#places.holds(cell, key)) {
        return cell;
      }
    }
    return place;
  }

  /** The cells that take tasks with keys; home where no cell does yet. */
  #takers(): readonly number[] {
    const { cells, nowMs } = this.#places.known();
    return numbersOf(takersAt(cells, nowMs));
  }
}

/** The cells that take tasks with keys at this time. */
export function takersAt(cells: readonly KnownCell[], atMs: number): readonly KnownCell[] {
  return cells.filter(
    ({ keyedFromMs, closedFromMs = Number.POSITIVE_INFINITY }) =>
      keyedFromMs <= atMs && atMs < closedFromMs,
  );
}

/** When other cells have begun to take tasks with keys, oldest first. */
export function changesUntil(cells: readonly KnownCell[], nowMs: number): readonly number[] {
  const all = cells.flatMap(({ keyedFromMs, closedFromMs = Number.POSITIVE_INFINITY }) => [
    keyedFromMs,
    closedFromMs,
  ]);
  return [...new Set(all)].filter((atMs) => atMs <= nowMs).sort((one, other) => one - other);
}

function numbersOf(takers: readonly KnownCell[]): readonly number[] {
  return takers.length === 0 ? [HOME_CELL] : takers.map(({ number }) => number);
}

/** The one of the cells whose hash with the text is the highest: one cell more moves no text between others. */
function chosen(cells: readonly number[], text: string): number {
  let [best = HOME_CELL] = cells;
  let highest = -1;
  for (const cell of cells.length > 1 ? cells : []) {
    const score = createHash("sha1").update(`${cell} ${text}`).digest().readUIntBE(0, 6);
    if (score > highest) {
      [best, highest] = [cell, score];
    }
  }
  return best;
}
