/** A time: relative to now in the page, absolute with its zone on hover and for machines. */
import { useNow } from "./use-now.ts";

const UNITS: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number])[] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
/** How often relative times are written again. */
const REFRESH_MS = 10_000;

/** In numbers alone: what is 30 hours ahead may be the day after tomorrow. */
const STYLES = {
  long: new Intl.RelativeTimeFormat("en", { style: "long" }),
  /** Where there is little room. */
  narrow: new Intl.RelativeTimeFormat("en", { style: "narrow" }),
};
const absolute = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });

/** Such as `3 hours ago` and `in 2 days`. */
function relativeTime(toMs: number, nowMs: number, style: keyof typeof STYLES): string {
  const seconds = (toMs - nowMs) / 1_000;
  const [unit, size] = UNITS.find(([, one]) => Math.abs(seconds) >= one) ?? ["second", 1];
  // What is kept for a day from now on is kept for 24 hours, a second later as well.
  const amount = seconds > 0 ? Math.round(seconds / size) : Math.trunc(seconds / size);
  return Math.abs(seconds) < 5 ? "just now" : STYLES[style].format(amount, unit);
}

interface TimeProps {
  readonly at: string;
  readonly style?: keyof typeof STYLES;
}

export function Time({ at, style = "long" }: TimeProps) {
  const nowMs = useNow(REFRESH_MS);
  const date = new Date(at);
  return (
    <time dateTime={at} title={absolute.format(date)}>
      {relativeTime(date.getTime(), Math.max(nowMs, Date.now()), style)}
    </time>
  );
}

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
    <time dateTime={at} title={relativeTime(ms, Math.max(nowMs, Date.now()), "long")}>
      {exactText(ms)}
    </time>
  );
}
