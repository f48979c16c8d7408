/** Reads a document that the server has beside its RPCs. */
import { readError, unreachable } from "./errors.ts";

export async function getJson(path: string, signal: AbortSignal): Promise<unknown> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(path, { signal });
    text = await response.text();
  } catch (err) {
    throw signal.aborted ? err : unreachable(err);
  }
  if (!response.ok) {
    throw readError(response, text);
  }
  return JSON.parse(text);
}
