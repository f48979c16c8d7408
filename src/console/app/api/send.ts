/** Sends requests to the paths that servers have beside their RPCs. */
import { readError, unreachable } from "./errors.ts";

/** Resolves with a successful answer; rejects with a `CallError` for others, and without one. */
export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch (err) {
    throw init.signal?.aborted ? err : unreachable(err);
  }
  if (!response.ok) {
    throw readError(response, await response.text());
  }
  return response;
}
