/** A time: relative to now in the page, absolute with its zone on hover and for machines. */
import { isDueLater } from "./duration.ts";
import { useNow } from "./use-now.ts";

const UNITS: readonly (readonly [unit: string, seconds: number])[] = [
  ["y", 31_536_000],
  ["mo", 2_592_000],
  ["d", 86_400],
  ["h", 3_600],
  ["min", 60],
  ["s", 1],
];
/** How often relative times are written again. */
const REFRESH_MS = 10_000;

/** Such as `3 h ago` and `in 2 d`: in numbers alone, because in 30 hours may be the day after tomorrow. */
function relativeTime(toMs: number, nowMs: number): string {
  const seconds = (toMs - nowMs) / 1_000;
  if (Math.abs(seconds) < 5) {
    return "just now";
  }
  // What is kept for a day from now on is kept for 24 hours, a second later as well.
  return seconds > 0 ? `in ${inOneUnit(seconds, Math.round)}` : `${inOneUnit(-seconds)} ago`;
}

function inOneUnit(seconds: number, whole: (amount: number) => number = Math.trunc): string {
  const [unit, size] = UNITS.find(([, one]) => seconds >= one) ?? ["s", 1];
  return `${whole(seconds / size)} ${unit}`;
}

interface TimeProps {
  readonly at: string;
}

export function Time({ at }: TimeProps) {
  const nowMs = useNow(REFRESH_MS);
  const date = new Date(at);
  return (
    <time dateTime={at} title={moment.format(date)}>
      {relativeTime(date.getTime(), Math.max(nowMs, Date.now()))}
    </time>
  );
}

/** How often it is checked whether something is due, while that is near. */
const DUE_REFRESH_MS = 1_000;

/** Whether something is due so late that it is worth saying when; false without a time. */
function useIsDueLater(at: string | undefined): boolean {
  const isNear = at !== undefined && !isDueLater(at, Date.now() + 2 * REFRESH_MS);
  const nowMs = useNow(at === undefined ? undefined : isNear ? DUE_REFRESH_MS : REFRESH_MS);
  return at !== undefined && isDueLater(at, Math.max(nowMs, Date.now()));
}

/** When something happens that is to come, such as `in 2 h`: `now` from a moment before it on. */
export function DueTime({ at }: TimeProps) {
  const isLater = useIsDueLater(at);
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={moment.format(ms)}>
      {isLater ? relativeTime(ms, Date.now()) : "now"}
    </time>
  );
}

/** For how long something runs, such as `up 4 min`; since when on hover. */
export function Uptime({ since }: { readonly since: string }) {
  const nowMs = useNow(REFRESH_MS);
  const sinceMs = Date.parse(since);
  return (
    <time dateTime={since} title={`since ${moment.format(sinceMs)}`}>
      up {inOneUnit((Math.max(nowMs, Date.now()) - sinceMs) / 1_000)}
    </time>
  );
}

/** A day and a time of day with its zone, such as `Nov 29, 2026, 14:03:22 GMT+1`. */
export const momentText = (ms: number): string => moment.format(ms);

const moment = new Intl.DateTimeFormat(undefined, {
  ...{ year: "numeric", month: "short", day: "numeric" },
  ...{ hour: "2-digit", minute: "2-digit", second: "2-digit" },
  ...{ hourCycle: "h23", timeZoneName: "short" },
});

/** A time to the millisecond with its zone, as records of what happened have it. */
export const exactText = (ms: number): string => exact.format(ms);

const exact = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  fractionalSecondDigits: 3,
  hourCycle: "h23",
  timeZoneName: "short",
});

/** The other way round than `Time`: absolute in the page, relative to now on hover. */
export function ExactTime({ at }: { readonly at: string }) {
  const nowMs = useNow(REFRESH_MS);
  const ms = Date.parse(at);
  return (
    <time dateTime={at} title={relativeTime(ms, Math.max(nowMs, Date.now()))}>
      {exactText(ms)}
    </time>
  );
}
