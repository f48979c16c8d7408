/**
 * Creates a random idempotency key. `crypto.randomUUID` is missing on pages
 * that were loaded without TLS.
 */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
