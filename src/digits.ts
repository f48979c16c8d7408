import { randomBytes } from "node:crypto";

/**
 * So many random hexadecimal digits. To be drawn for hundreds of ids at once:
 * one by one they would cost a tenth of a submit.
 */
export function randomDigits(count: number): string {
  return randomBytes(Math.ceil(count / 2))
    .toString("hex")
    .slice(0, count);
}
