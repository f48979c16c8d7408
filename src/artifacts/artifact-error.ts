/** Thrown when an artifact cannot be built, read or unpacked. The message says what is wrong. */
export class ArtifactError extends Error {
  override readonly name = "ArtifactError";
}

/** An untrusted name for a message: shortened, and without control characters. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name);
}
