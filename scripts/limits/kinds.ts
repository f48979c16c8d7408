/** What the name of a constant says of its kind and unit, and how its value is shown. */

export type Kind = "time" | "size" | "count" | "rate";

export const KINDS: readonly {
  readonly kind: Kind;
  readonly title: string;
  readonly intro: string;
}[] = [
  { kind: "time", title: "Times", intro: "Intervals, pauses, timeouts and lifetimes." },
  {
    kind: "size",
    title: "Sizes",
    intro: "Of messages, files and texts; characters are UTF-16 units.",
  },
  { kind: "count", title: "Counts", intro: "How many there may be, at a time or in all." },
  {
    kind: "rate",
    title: "Rates",
    intro: "What goes beyond a rate waits, or is counted and dropped.",
  },
];

/**
 * The naming rule: a constant ends with its unit, or begins with MAX_, MIN_ or
 * DEFAULT_ and says what it counts. Members of tables are written in camelCase.
 */
const RULES: readonly (readonly [pattern: RegExp, kind: Kind])[] = [
  [/(?:_PER_SECOND|PerSecond)$/, "rate"],
  [/(?:_(?:MS|SECONDS|DAYS)|Ms)$/, "time"],
  [/(?:_(?:BYTES|KIB|MIB|MB|CHARACTERS)|Bytes|Mib)$/, "size"],
  [/_(?:COUNT|LINES|CHUNKS)$|^(?:MAX|MIN|DEFAULT)_|\.(?:max[A-Z]\w*|cpus)$/, "count"],
];

/** Whether a name ends with a unit, so that members of its table need none. */
export function hasUnit(name: string): boolean {
  return /_(?:MS|SECONDS|DAYS|BYTES|KIB|MIB|CHARACTERS|COUNT|LINES|CHUNKS)$/.test(name);
}

/** Undefined where a name follows no rule. */
export function kindOf(name: string): Kind | undefined {
  const bare = name.replace(/ \(\w+\)$/, "");
  return RULES.find(([pattern]) => pattern.test(bare))?.[1];
}

const TIMES = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1_000, "s"],
] as const;
const SIZES = [
  [1024 ** 3, "GiB"],
  [1024 ** 2, "MiB"],
  [1024, "KiB"],
] as const;
const THOUSAND_YEARS_MS = 1_000 * 365 * 86_400_000;

/** A value with its unit, such as 20 s, 64 KiB or 10,000. */
export function format(name: string, value: number): string {
  const unit = name
    .replace(/ \(\w+\)$/, "")
    .match(
      /(?:_|(?<=[a-z]))(MS|Ms|SECONDS|DAYS|KIB|MIB|MB|BYTES|Bytes|Mib|CHARACTERS|LINES|CHUNKS)$/,
    )?.[1];
  switch (unit?.toUpperCase()) {
    case "MS":
      return value > THOUSAND_YEARS_MS ? new Date(value).toISOString() : scaled(value, TIMES, "ms");
    case "SECONDS":
      return scaled(value * 1_000, TIMES, "ms");
    case "DAYS":
      return `${value} d`;
    case "BYTES":
      return scaled(value, SIZES, "bytes");
    case "KIB":
      return scaled(value * 1024, SIZES, "bytes");
    case "MIB":
      return scaled(value * 1024 ** 2, SIZES, "bytes");
    case "MB":
      return `${value} MB`;
    case "CHARACTERS":
      return `${grouped(value)} characters`;
    case "LINES":
      return `${grouped(value)} lines`;
    case "CHUNKS":
      return `${grouped(value)} chunks`;
    default:
      return `${name.includes("BYTES_PER") ? scaled(value, SIZES, "bytes") : grouped(value)}${kindOf(name) === "rate" ? " per second" : ""}`;
  }
}

/** In the largest unit in which it has at most one decimal. */
function scaled(
  value: number,
  units: readonly (readonly [size: number, unit: string])[],
  smallest: string,
): string {
  const fits = units.find(([size]) => value >= size && Number.isInteger((value / size) * 10));
  return fits ? `${grouped(value / fits[0])} ${fits[1]}` : `${grouped(value)} ${smallest}`;
}

function grouped(value: number): string {
  return value.toLocaleString("en-US");
}
