import { createHash } from "node:crypto";
import { ArtifactError, quoted } from "./artifact-error.ts";
import type { IndexedFile } from "./index-file.ts";

/**
 * Verifies the content of a file while passing it on. Throws an `ArtifactError` as
 * soon as there are more bytes than the index says, or at the end when the size or
 * the digest is wrong.
 */
export async function* verified(
  content: AsyncIterable<Uint8Array>,
  { path, size, sha256 }: IndexedFile,
): AsyncGenerator<Uint8Array, void, undefined> {
  const hash = createHash("sha256");
  let length = 0;
  for await (const chunk of content) {
    length += chunk.length;
    if (length > size) {
      throw new ArtifactError(
        `${quoted(path)} has more than the ${size} bytes that the index says`,
      );
    }
    hash.update(chunk);
    yield chunk;
  }
  if (length < size) {
    throw new ArtifactError(`${quoted(path)} has ${length} bytes, and ${size} by the index`);
  }
  if (hash.digest("hex") !== sha256) {
    throw new ArtifactError(
      `${quoted(path)} is not what the index says: it was changed or damaged`,
    );
  }
}
