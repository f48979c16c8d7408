/** How charts and tables write numbers with their units. */

/** Writes a value with its unit: the one that fits it, or that of `like`, as all ticks of an axis have it. */
export type Format = (value: number, like?: number) => string;

const MULTIPLES = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
] as const;

const BINARY_MULTIPLES = [
  [1_073_741_824, "GiB"],
  [1_048_576, "MiB"],
  [1_024, "KiB"],
] as const;

/** At most three digits that count. */
const digits = (value: number): string => `${Number(value.toPrecision(3))}`;

export const count: Format = (value, like = value) => {
  const [size, multiple] = MULTIPLES.find(([least]) => Math.abs(like) >= least) ?? [1, ""];
  return value === 0 ? "0" : `${digits(value / size)}${multiple}`;
};

export const seconds: Format = (value, like = value) =>
  like !== 0 && Math.abs(like) < 1 ? `${digits(value * 1_000)} ms` : `${count(value, like)} s`;

export const bytes: Format = (value, like = value) => {
  const [size, multiple] = BINARY_MULTIPLES.find(([least]) => Math.abs(like) >= least) ?? [1, "B"];
  return `${digits(value / size)} ${multiple}`;
};

/** A part of a whole, from 0 to 1, in two digits that count. */
export const percent: Format = (part) => `${Number((part * 100).toPrecision(2))} %`;

const SYMBOLS: Readonly<Record<string, string>> = {
  milliseconds: "ms",
  percent: "%",
  celsius: "°C",
  meters: "m",
  grams: "g",
  joules: "J",
  watts: "W",
  volts: "V",
  amperes: "A",
  hertz: "Hz",
};

/** The format for a unit of `ListMetrics`; numbers alone for one that is not known. */
export function formatOf(unit: string): Format {
  if (unit === "seconds") {
    return seconds;
  }
  if (unit === "bytes") {
    return bytes;
  }
  if (unit === "ratio") {
    return (value) => `${digits(value * 100)} %`;
  }
  const symbol = SYMBOLS[unit];
  return symbol === undefined ? count : (value, like) => `${count(value, like)} ${symbol}`;
}

/** Counters are told per second, and counts are understood per minute: one in five minutes is not 0/s. */
export const perMinute =
  (format: Format): Format =>
  (value, like = value) =>
    `${format(value * 60, like * 60)}/min`;

export const perSecond =
  (format: Format): Format =>
  (value, like) =>
    `${format(value, like)}/s`;
