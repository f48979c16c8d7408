/** Patterns of values that JSON writes as text: durations and bytes. */

/** Base64 (RFC 4648, section 4), with padding. */
export const BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$";

/** The number of characters that bytes have in base64. */
export function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

/** Fraction of a second: proto durations have nanoseconds. */
const FRACTION = "(?:\\.[0-9]{1,9})?";

/** A duration such as `1.5s`, from zero to a number of seconds. Default: 10,000 years, as far as durations go. */
export function durationPattern(maxSeconds = 315_576_000_000): string {
  const digits = String(maxSeconds);
  const shorter =
    digits.length > 1 ? [digits.length > 2 ? `[0-9]{1,${digits.length - 1}}` : "[0-9]"] : [];
  const below = [...digits].flatMap((digit, index) => {
    const rest = digits.length - index - 1;
    const tail = "[0-9]".repeat(Math.min(rest, 1)) + (rest > 1 ? `{${rest}}` : "");
    return digit === "0" ? [] : [`${digits.slice(0, index)}[0-${Number(digit) - 1}]${tail}`];
  });
  const whole = [...shorter, ...below].join("|");
  return `^(?:(?:${whole})${FRACTION}|${digits}(?:\\.0{1,9})?)s$`;
}
