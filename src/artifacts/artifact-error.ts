/** An artifact that cannot be built, read or unpacked; the message says what is wrong with it. */
export class ArtifactError extends Error {
  override readonly name = "ArtifactError";
}

/** A name from outside, short enough for a message and without what could steer a terminal. */
export function quoted(name: string): string {
  return JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name);
}
