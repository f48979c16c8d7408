/**
 * Results of tasks, from the path of their endpoint (`GET /{endpoint}/get`): as the function
 * returned them, of any size. The platform's own host takes such paths with the name of the
 * deployment in a header.
 */
import { queryOptions } from "@tanstack/react-query";
import { readError, unreachable } from "./errors.ts";
import { fullName, type TaskName } from "./tasks.ts";

/** A larger result is not loaded into the page. */
const MAX_LOADED_BYTES = 64 * 1024 * 1024;

export interface LoadedResult {
  /** With its content type. Undefined for one that is too large. */
  readonly blob: Blob | undefined;
  readonly bytes: number;
  /** Empty if the function gave none. */
  readonly filename: string;
}

/** The result of a task that succeeded. */
export const resultOf = (name: TaskName, endpoint: string) =>
  queryOptions({
    queryKey: ["result", name.organization, name.deployment, name.taskId],
    queryFn: ({ signal }) => loadResult(name, endpoint, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });

async function loadResult(
  name: TaskName,
  endpoint: string,
  signal: AbortSignal,
): Promise<LoadedResult> {
  let response: Response;
  try {
    const query = new URLSearchParams({ task_id: name.taskId });
    const headers = { "tessera-deployment": fullName(name) };
    response = await fetch(`/${endpoint}/get?${query}`, { headers, signal });
  } catch (err) {
    throw signal.aborted ? err : unreachable(err);
  }
  if (!response.ok) {
    throw readError(response, await response.text());
  }
  const filename = filenameOf(response.headers.get("content-disposition") ?? "");
  const bytes = Number(response.headers.get("content-length") ?? 0);
  if (bytes > MAX_LOADED_BYTES) {
    await response.body?.cancel();
    return { blob: undefined, bytes, filename };
  }
  const blob = await response.blob();
  return { blob, bytes: blob.size, filename };
}

/** The file name of a `Content-Disposition` (RFC 6266); the extended form goes before. */
function filenameOf(disposition: string): string {
  const [, extended] = /filename\*=UTF-8''([^;]+)/i.exec(disposition) ?? [];
  const [, plain = ""] = /filename="((?:[^"\\]|\\.)*)"/i.exec(disposition) ?? [];
  return extended === undefined ? plain.replace(/\\(.)/g, "$1") : decodeURIComponent(extended);
}
