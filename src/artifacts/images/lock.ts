/**
 * The lock of a container image: one line that says which manifest it is, for which architecture,
 * and what it takes to download. It comes from the person who deploys.
 *
 *   docker.io/library/debian@sha256:2f0e… amd64 48391234
 */
import { parseImage } from "../../protocol/image.ts";
import { EnvironmentError } from "../environments/environment.ts";

/** Text of a lock: the name of an image with its digest, and two words. */
export const MAX_IMAGE_LOCK_BYTES = 1024;

const LINE = /^(?<image>\S+) (?<architecture>amd64|arm64) (?<size>[0-9]{1,15})\n?$/;

export interface PinnedImage {
  /** Registry and repository. */
  readonly name: string;
  /** SHA-256 of the manifest, in hex. */
  readonly digest: string;
  readonly architecture: ImageArchitecture;
  /** Bytes of its layers as they are downloaded, as the manifest says. */
  readonly size: number;
}

/** Of images for Linux, as registries call it. */
type ImageArchitecture = "amd64" | "arm64";

/** The architecture of this machine. */
export function ownArchitecture(): ImageArchitecture {
  return process.arch === "arm64" ? "arm64" : "amd64";
}

/** The image of a lock. Throws an `EnvironmentError` for other text. */
export function readImageLock(text: string): PinnedImage {
  const groups = LINE.exec(text)?.groups;
  const { image = "", architecture, size } = groups ?? {};
  const named = parseImage(image);
  if (named?.digest === undefined || architecture === undefined) {
    throw new EnvironmentError(
      "LOCK_INVALID",
      `the lock of its image is invalid: ${JSON.stringify(text.slice(0, 100))} is no image with its digest, architecture and bytes`,
      { isFinal: true },
    );
  }
  return {
    name: named.name,
    digest: named.digest,
    architecture: architecture as ImageArchitecture,
    size: Number(size),
  };
}

export function writeImageLock({ name, digest, architecture, size }: PinnedImage): string {
  return `${name}@sha256:${digest} ${architecture} ${size}\n`;
}
