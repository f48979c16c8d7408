/** The range of time that a page shows, which is in the address: a link shows the same. */

/** The ranges that end now: what they are called, and their length in seconds. */
export const RANGES = {
  "15m": ["15 min", 900],
  "1h": ["1 h", 3_600],
  "6h": ["6 h", 21_600],
  "24h": ["24 h", 86_400],
  "7d": ["7 d", 604_800],
} as const satisfies Readonly<Record<string, readonly [label: string, seconds: number]>>;

export type RangeName = keyof typeof RANGES;

/** The name of the range that begins with the newest revision of a deployment. */
export const SINCE_DEPLOY = "deploy";

export type NamedRange = RangeName | typeof SINCE_DEPLOY;

/** The last time there is in JavaScript. */
const MAX_TIME_MS = 8_640_000_000_000_000;

export interface RangeSearch {
  /** A range that ends now. */
  readonly range?: RangeName;
  /** One between two times, in milliseconds since 1970: both or none. */
  readonly from?: number;
  readonly to?: number;
}

/** A range between two times. */
export interface TimeBounds {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Leaves out what is no range; two times go before a name. */
export function readRange({ range, from, to }: Record<string, unknown>): RangeSearch {
  if (isTime(from) && isTime(to) && from < to) {
    return { from, to };
  }
  return typeof range === "string" && Object.hasOwn(RANGES, range)
    ? { range: range as RangeName }
    : {};
}

const isTime = (value: unknown): value is number =>
  Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= MAX_TIME_MS;

/** The two times of a range that has any. */
export function boundsIn({ from, to }: Pick<RangeSearch, "from" | "to">): TimeBounds | undefined {
  return from === undefined || to === undefined ? undefined : { fromMs: from, toMs: to };
}

/** A range of at least this length, around the same middle. */
export function atLeast({ fromMs, toMs }: TimeBounds, lengthMs: number): TimeBounds {
  const moreMs = Math.max(0, lengthMs - (toMs - fromMs)) / 2;
  return { fromMs: Math.floor(fromMs - moreMs), toMs: Math.ceil(toMs + moreMs) };
}

const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });
const minute = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
const second = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});

/** The time of day with seconds, such as `14:03:22`. */
export const secondText = (ms: number): string => second.format(ms);

/** The day, such as `Nov 28`. */
export const dayText = (ms: number): string => day.format(ms);

const utcDay = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "numeric",
  timeZone: "UTC",
});

/** The day of UTC, such as `Nov 28`. */
export const utcDayText = (ms: number): string => utcDay.format(ms);

/** A time as an axis has it: the time of day, and the day at midnight. */
export function tickText(ms: number): string {
  const date = new Date(ms);
  return date.getHours() === 0 && date.getMinutes() === 0 ? day.format(date) : minute.format(date);
}

/** Such as `14:03:10 – 14:05:00`, with the days where they are not today. */
export function rangeText({ fromMs, toMs }: TimeBounds, nowMs: number): string {
  const today = day.format(nowMs);
  const [first, last] = [day.format(fromMs), day.format(toMs)];
  const from = first === today && last === today ? "" : `${first}, `;
  const to = first === last ? "" : `${last}, `;
  return `${from}${second.format(fromMs)} – ${to}${second.format(toMs)}`;
}

/** What is chosen in words, such as `Last 6 h` or its two times; undefined for all that there is. */
export function rangeWords(
  { range, ...times }: Omit<RangeSearch, "range"> & { readonly range?: NamedRange },
  nowMs: number,
): string | undefined {
  const bounds = boundsIn(times);
  if (bounds !== undefined) {
    return rangeText(bounds, nowMs);
  }
  return range === SINCE_DEPLOY ? "Since the deploy" : range && `Last ${RANGES[range][0]}`;
}

const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** The day with its year, such as `Nov 28, 2026`. */
export const dateText = (at: string): string => date.format(new Date(at));
