/** The option `batch` of an endpoint, whose function takes several calls at once. */
import { type Duration, formatDuration, parseDuration } from "../protocol/duration.ts";
import type { BatchManifest } from "../protocol/manifest.ts";
import { ServiceDefinitionError } from "./errors.ts";
import { refuseUnknown } from "./unknown.ts";

/** Calls of one batch. */
export const MAX_BATCH_SIZE = 1_000;
/** How long a call may wait for others. */
export const MAX_BATCH_WAIT_MS = 60_000;
/** Arguments of one batch. */
export const MAX_BATCH_BYTES = 1024 ** 3;

/** How long the oldest call waits for others by default. */
const DEFAULT_BATCH_WAIT_MS = 10;
/** Arguments of one batch by default. */
const DEFAULT_BATCH_BYTES = 64 * 1024 ** 2;

/**
 * How calls are put together. Under load a batch is what waits when a worker becomes free,
 * and nothing waits for more.
 */
export interface BatchOptions {
  /** The most calls of a batch, from 1 to 1,000. */
  readonly maxSize: number;
  /**
   * How long the oldest call waits for others, at most, while a worker is free; up to 60 s.
   * It is less where calls come one by one. Default: 10 ms.
   */
  readonly maxWait?: Duration;
  /** Limit of the arguments of a batch, in bytes of JSON and files. Default: 64 MiB. */
  readonly maxBytes?: number;
  /** The dotted path of an argument: only calls with the same value of it go together. */
  readonly key?: string;
  /**
   * When the function throws: `split` runs each call once alone, so that one bad item fails
   * alone; `fail` fails all with BATCH_FAILED. Default: `split`.
   */
  readonly onError?: "split" | "fail";
}

const BATCH_OPTIONS: Readonly<Record<keyof BatchOptions, true>> = {
  maxSize: true,
  maxWait: true,
  maxBytes: true,
  key: true,
  onError: true,
};

/** The option as the manifest has it. Throws a `ServiceDefinitionError` that names what is wrong. */
export function resolveBatch(options: BatchOptions, place: string): BatchManifest {
  refuseUnknown(options, BATCH_OPTIONS, place, "batch.");
  const { maxSize, maxWait, maxBytes = DEFAULT_BATCH_BYTES, key, onError = "split" } = options;
  const maxWaitMs = parseDuration(maxWait ?? DEFAULT_BATCH_WAIT_MS);
  const refuse = (message: string): never => {
    throw new ServiceDefinitionError(place, `batch.${message}`);
  };
  if (!isWithin(maxSize, MAX_BATCH_SIZE)) {
    refuse(`maxSize must be a whole number from 1 to ${MAX_BATCH_SIZE}`);
  }
  if (maxWaitMs === undefined || maxWaitMs > MAX_BATCH_WAIT_MS) {
    refuse(`maxWait must be a duration of at most ${formatDuration(MAX_BATCH_WAIT_MS)}`);
  }
  if (!isWithin(maxBytes, MAX_BATCH_BYTES)) {
    refuse(`maxBytes must be a whole number from 1 to ${MAX_BATCH_BYTES}`);
  }
  if (key !== undefined && (typeof key !== "string" || key === "")) {
    refuse("key must be the dotted path of an argument");
  }
  if (onError !== "split" && onError !== "fail") {
    refuse('onError must be "split" or "fail"');
  }
  return {
    maxSize,
    maxWaitMs: maxWaitMs ?? 0,
    maxBytes,
    ...(key !== undefined && { keyPointer: pointerOf(key) }),
    onError,
  };
}

function isWithin(value: unknown, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= 1 && (value as number) <= max;
}

/** The JSON Pointer (RFC 6901) of a dotted path. */
function pointerOf(path: string): string {
  return path
    .split(".")
    .map((part) => `/${part.replaceAll("~", "~0").replaceAll("/", "~1")}`)
    .join("");
}
