/** Parts of the console that are loaded when they are needed. */
import { CallError } from "./errors.ts";

/** A part that did not come because nothing answered. */
export class NotLoaded extends CallError {}

/**
 * A part that is being loaded. Without a network it fails as calls do; with one, another version
 * of the server has other files, for which the router loads the document again.
 */
export function loaded<Part>(part: Promise<Part>): Promise<Part> {
  return part.catch(async (cause: unknown) => {
    throw (await isReachable())
      ? cause
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
