/**
 * Which of the calls that wait go together: the oldest, and others like it. And how long the oldest
 * waits for them.
 */
import { parseExactly } from "../../collections/exact-json.ts";
import type { BatchManifest } from "../../protocol/manifest.ts";
import { isAtHand, jsonOf, type Payload } from "../../protocol/messages.ts";
import { payloadBytes } from "../../storage/stored.ts";

/** Arguments that are read for their key; a call with longer ones goes alone. */
const MAX_KEYED_CHARACTERS = 256 * 1024;

/** A shorter wait counts as no wait: timers have no finer steps. */
const MIN_BATCH_WAIT_MS = 1;

export interface BatchItem {
  /** The size of the arguments, files included. */
  readonly bytes: number;
  /** Calls with the same key go together; undefined goes alone. */
  readonly key: string | undefined;
}

/** The size and the key of a call. */
export function batchItem(payload: Payload, { keyPointer }: BatchManifest): BatchItem {
  return {
    bytes: payloadBytes(payload),
    key: keyPointer === undefined ? "" : keyOf(payload, keyPointer),
  };
}

/**
 * The items that go with the first, and whether the batch is full: it has the most calls, or
 * no room for another one that has come.
 */
export function together<Item extends BatchItem>(
  items: Iterable<Item>,
  { maxSize, maxBytes }: BatchManifest,
): { readonly group: readonly Item[]; readonly full: boolean } {
  const group: Item[] = [];
  let bytes = 0;
  for (const item of items) {
    const [first] = group;
    if (first && (first.key === undefined || item.key !== first.key)) {
      continue;
    }
    if (first && bytes + item.bytes > maxBytes) {
      return { group, full: true };
    }
    group.push(item);
    bytes += item.bytes;
    if (group.length === maxSize) {
      break;
    }
  }
  const [first] = group;
  return { group, full: group.length === maxSize || first?.key === undefined };
}

function keyOf(payload: Payload, pointer: string): string | undefined {
  if (!isAtHand(payload) && payload.text !== undefined) {
    return undefined;
  }
  const { jsonBytes, json } = payload;
  if ((jsonBytes ?? json).length > MAX_KEYED_CHARACTERS) {
    return undefined;
  }
  let value: unknown;
  try {
    // Numbers that differ beyond what a double holds are different keys.
    value = parseExactly(jsonOf(payload));
  } catch {
    // It has numbers that only Python reads.
    return undefined;
  }
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    const isObject = typeof value === "object" && value !== null;
    value = isObject && Object.hasOwn(value as object, name) ? (value as never)[name] : null;
  }
  return JSON.stringify(value);
}

/**
 * How long the oldest call waits for others while a worker is free. The wait is halved for
 * each batch that nobody joined, down to none, so that callers who come one by one do not
 * wait in vain; a batch with company brings it back.
 */
export class BatchWait {
  readonly #maxMs: number;
  #ms: number;

  constructor(maxMs: number) {
    this.#maxMs = maxMs;
    this.#ms = maxMs;
  }

  get ms(): number {
    return this.#ms;
  }

  /** A batch of this number of calls was formed. */
  formed(size: number): void {
    const halved = this.#ms / 2;
    this.#ms = size > 1 ? this.#maxMs : halved < MIN_BATCH_WAIT_MS ? 0 : halved;
  }
}
