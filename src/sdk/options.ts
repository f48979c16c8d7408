/** The options of an endpoint: what they mean, their defaults and their bounds. */
import { type Duration, formatDuration, parseDuration } from "../protocol/duration.ts";
import type { RetryPolicy } from "../protocol/manifest.ts";
import { ServiceDefinitionError } from "./errors.ts";

/** `api` answers in the call, `task` is queued. */
export type EndpointKind = "api" | "task";

/**
 * Options of both kinds. An `api` accepts those of a task and ignores them, so
 * that turning one into the other changes only the word.
 */
export interface RunOptions {
  /** What the endpoint does, for its documentation. */
  readonly description?: string;
  /**
   * How long one execution may take, from 1 ms to 24 h. Default: 60 s for an
   * `api`, because callers and proxies rarely wait longer; 10 min for a `task`.
   */
  readonly timeout?: Duration;
  /**
   * How many calls one worker executes at a time, from 1 to 1,000. Default: 100
   * for an `api`, which mostly waits for something else; 1 for a `task`, which
   * mostly computes, so that no task is held up by another's blocking or shares
   * its memory. More workers, not more concurrency, make computation faster.
   */
  readonly concurrency?: number;
  /** How long a task is kept after it has ended, from 1 s to 365 d. Default: 24 h. */
  readonly retention?: Duration;
  /**
   * How a task that threw is tried again: `max` times (0 to 100) after the first,
   * waiting `backoff` (0 to 1 h, default 1 s) before the first retry and twice
   * as long before each further one. Default: not at all, because only the author knows
   * whether a function may run twice.
   */
  readonly retries?: { readonly max: number; readonly backoff?: Duration };
  /** How many tasks may wait before submits are refused, from 1 to 10,000,000. Default: 10,000. */
  readonly queueLimit?: number;
  /** Tasks of a higher priority run first; from -1,000 to 1,000. Default: 0. */
  readonly priority?: number;
}

export interface ResolvedOptions {
  readonly description?: string;
  readonly timeoutMs: number;
  readonly concurrency: number;
  readonly retentionMs: number;
  readonly retries: RetryPolicy;
  readonly queueLimit: number;
  readonly priority: number;
}

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;

const DEFAULTS = {
  api: { timeout: 60 * SECOND, concurrency: 100 },
  task: { timeout: 600 * SECOND, concurrency: 1 },
} as const;

const MAX_DESCRIPTION_LENGTH = 10_000;

/** Defaults filled in, bounds checked; throws a `ServiceDefinitionError` naming the option. */
export function resolveOptions(
  kind: EndpointKind,
  options: RunOptions,
  place: string,
): ResolvedOptions {
  const defaults = DEFAULTS[kind];
  const { description, retries = { max: 0 } } = options;
  if (typeof retries !== "object" || retries === null) {
    throw new ServiceDefinitionError(place, "retries must be an object: { max, backoff }");
  }
  return {
    ...checkDescription(description, place),
    timeoutMs: milliseconds(options.timeout ?? defaults.timeout, {
      place,
      name: "timeout",
      min: 1,
      max: DAY,
    }),
    concurrency: integer(options.concurrency ?? defaults.concurrency, {
      place,
      name: "concurrency",
      min: 1,
      max: 1000,
    }),
    retentionMs: milliseconds(options.retention ?? DAY, {
      place,
      name: "retention",
      min: SECOND,
      max: 365 * DAY,
    }),
    retries: {
      max: integer(retries.max, { place, name: "retries.max", min: 0, max: 100 }),
      backoffMs: milliseconds(retries.backoff ?? SECOND, {
        place,
        name: "retries.backoff",
        min: 0,
        max: HOUR,
      }),
    },
    queueLimit: integer(options.queueLimit ?? 10_000, {
      place,
      name: "queueLimit",
      min: 1,
      max: 10_000_000,
    }),
    priority: integer(options.priority ?? 0, { place, name: "priority", min: -1000, max: 1000 }),
  };
}

/** The description as a property to spread, or nothing. */
export function checkDescription(
  description: unknown,
  place: string,
): { readonly description?: string } {
  if (description === undefined) {
    return {};
  }
  if (typeof description !== "string" || description.length > MAX_DESCRIPTION_LENGTH) {
    throw new ServiceDefinitionError(
      place,
      `description must be a string of at most ${MAX_DESCRIPTION_LENGTH} characters`,
    );
  }
  return { description };
}

interface Bounds {
  readonly place: string;
  readonly name: string;
  readonly min: number;
  readonly max: number;
}

function milliseconds(value: Duration, { place, name, min, max }: Bounds): number {
  const parsed = parseDuration(value);
  if (parsed === undefined || parsed < min || parsed > max) {
    throw new ServiceDefinitionError(
      place,
      `${name} must be milliseconds or a duration such as "30s" or "5m", ` +
        `from ${formatDuration(min)} to ${formatDuration(max)}, not ${show(value)}`,
    );
  }
  return parsed;
}

function integer(value: number, { place, name, min, max }: Bounds): number {
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new ServiceDefinitionError(
      place,
      `${name} must be a whole number from ${min} to ${max}, not ${show(value)}`,
    );
  }
  return value;
}

function show(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
