/** Parts of the console that are loaded when they are needed. */
import { CallError } from "./errors.ts";

/** A part that did not come because nothing answered. */
export class NotLoaded extends CallError {}

/** How browsers begin to say that a module is not there, by which the router tells it. */
const NO_MODULE = "Failed to fetch dynamically imported module";

/**
 * A part that is being loaded. Without a network it fails as calls do; with one, another version
 * of the server has other files, for which the router loads the document again when the part is to
 * be shown: once for each file, which the message names. The bundler tells of a style sheet that is
 * gone in words of its own.
 */
export function loaded<Part>(part: Promise<Part>): Promise<Part> {
  return part.catch(async (cause: unknown) => {
    throw (await isReachable())
      ? new TypeError(`${NO_MODULE}: ${cause instanceof Error ? cause.message : cause}`, { cause })
      : new NotLoaded("The server cannot be reached to load this page.", { cause });
  });
}

/** Whether the server answers. */
export function isReachable(): Promise<boolean> {
  return fetch("/livez", { cache: "no-store" }).then(
    () => true,
    () => false,
  );
}
