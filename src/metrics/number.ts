/**
 * Formats numbers as Prometheus does: the shortest digits that parse back to
 * the same value, with an exponent of at least two digits below 1e-4 and from
 * 1e6 on. Source: `strconv.FormatFloat(v, 'g', -1, 64)` of Go, with zero of
 * either sign as `0` (writeFloat of expfmt/text_create.go).
 */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  if (size < 1e6 && size >= 1e-4) {
    // JavaScript also writes the shortest digits.
    return String(value);
  }
  if (value === 0) {
    return "0";
  }
  if (!Number.isFinite(value)) {
    return Number.isNaN(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf";
  }
  const [digits, exponent = ""] = value.toExponential().split("e");
  return `${digits}e${exponent[0]}${exponent.slice(1).padStart(2, "0")}`;
}
