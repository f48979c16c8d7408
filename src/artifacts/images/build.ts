/** The container image of a service that is built. */
import { findSandbox } from "../../pool/sandbox/sandbox.ts";
import { faultOfImage } from "../../protocol/image.ts";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import type { BuildOptions } from "../build-options.ts";
import { indexFiles } from "../content.ts";
import { EnvironmentError } from "../environments/environment.ts";
import { IMAGE_LOCK_NAME } from "../index-file.ts";
import type { BuiltLock } from "../layers/build.ts";
import { writeImageLock } from "./lock.ts";
import { Registry } from "./registry.ts";

/** What a build reaches: all that its user does, whose machine it is. */
export const ANYWHERE = ["0.0.0.0/0", "::/0"];

/**
 * The lock of the image that the build or the code names, as a file of the artifact; nothing
 * without any. Rejects with an `EnvironmentError`.
 */
export async function lockedImage(
  { image: declared }: Pick<ServiceManifest, "image">,
  options: BuildOptions,
): Promise<BuiltLock> {
  const { image = declared, lockImage, onStep } = options;
  if (image === undefined) {
    return { content: new Map(), files: [] };
  }
  const fault = faultOfImage(image);
  if (fault !== undefined) {
    throw new EnvironmentError("LOCK_INVALID", fault, { isFinal: true });
  }
  onStep?.("image");
  const lock = (await lockImage?.(image)) ?? (await lockHere(image, options));
  const content = new Map([[IMAGE_LOCK_NAME, Buffer.from(lock)]]);
  return { content, files: await indexFiles(content) };
}

/** Asks the registry from this machine. */
async function lockHere(image: string, { python, signal }: BuildOptions): Promise<string> {
  const { searchPath = "", env = {} } = python ?? {};
  const sandbox = await findSandbox("auto", searchPath);
  if (sandbox.level !== "kernel") {
    throw new EnvironmentError(
      "SANDBOX_UNAVAILABLE",
      `the registry of its image is asked in the kernel's sandbox, and this machine has none (${sandbox.shortfall}): deploy it with tessera deploy, whose platform asks`,
    );
  }
  const registry = new Registry({ sandbox, searchPath, env, allowed: ANYWHERE });
  return writeImageLock(await registry.pin(image, signal));
}
