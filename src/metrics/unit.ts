/** Units of metrics, which by Prometheus' convention end their names. */

/** Base units of Prometheus (https://prometheus.io/docs/practices/naming/#base-units), and others that are common. */
const UNITS: ReadonlySet<string> = new Set([
  "seconds",
  "milliseconds",
  "bytes",
  "ratio",
  "percent",
  "celsius",
  "meters",
  "grams",
  "joules",
  "watts",
  "volts",
  "amperes",
  "hertz",
]);

/** The unit of a metric by its name, before `_total`; empty for a plain number. */
export function unitOf(name: string): string {
  const last =
    name
      .replace(/_total$/, "")
      .split("_")
      .at(-1) ?? "";
  return UNITS.has(last) ? last : "";
}
