/**
 * Creates a random idempotency key. `crypto.randomUUID` is missing on pages
 * that were loaded without TLS.
 */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A random key stands for one request, whose answer may be lost: it returns its task in any case. */
export function replaysAlways(options: {
  readonly idempotencyKey?: string;
  readonly replay?: "always";
}): boolean {
  return options.idempotencyKey === undefined || options.replay === "always";
}
