/**
 * Results of tasks, from the path of their endpoint (`GET /{endpoint}/get`), which for a server is
 * its name: as the function
 * returned them, of any size; and arguments (`GET /{endpoint}/arguments`) as they were submitted.
 * The platform's own host takes such paths with the name of the deployment in a header.
 */
import { queryOptions } from "@tanstack/react-query";
import { send } from "./send.ts";
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
    queryFn: ({ signal }) => load(name, pathOf(endpoint, "get"), signal),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** The arguments of a task, in which a number stands for each file, and what is known of the files. */
export interface TaskArguments {
  /** Their JSON as it was sent: a number of it may be no double. */
  readonly text: string;
  readonly files: readonly {
    /** The name of the argument; empty where the endpoint no longer has it. */
    readonly argument?: string;
    readonly filename?: string;
    readonly content_type?: string;
    readonly size?: number;
  }[];
}

/** The arguments of a task; undefined where they are too large for a page. */
export const argumentsOf = (name: TaskName, endpoint: string) =>
  queryOptions({
    queryKey: ["arguments", name.organization, name.deployment, name.taskId],
    queryFn: async ({ signal }) => {
      const { blob } = await load(name, pathOf(endpoint, "arguments"), signal);
      return blob === undefined ? null : partsOf(await blob.text());
    },
    staleTime: Number.POSITIVE_INFINITY,
  });

const BEGIN = '{"arguments":';
const MIDDLE = ',"files":';

/** The answer in its two parts. */
function partsOf(answer: string): TaskArguments {
  const middle = answer.lastIndexOf(MIDDLE);
  const files = JSON.parse(answer.slice(middle + MIDDLE.length, -1)) as TaskArguments["files"];
  return { text: answer.slice(BEGIN.length, middle), files };
}

/** One of the files in the arguments of a task, by its number. */
export const argumentFileOf = (name: TaskName, endpoint: string, file: number) =>
  queryOptions({
    queryKey: ["arguments", name.organization, name.deployment, name.taskId, file],
    queryFn: ({ signal }) =>
      load(name, pathOf(endpoint, "arguments"), signal, { file: String(file) }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** A path of the tasks of an endpoint. */
export function pathOf(endpoint: string, verb: string): string {
  const path = endpoint.startsWith("/") ? encodeURI(endpoint) : `/${endpoint}`;
  return `${path === "/" ? "" : path}/${verb}`;
}

async function load(
  name: TaskName,
  path: string,
  signal: AbortSignal,
  more: Readonly<Record<string, string>> = {},
): Promise<LoadedResult> {
  const query = new URLSearchParams({ task_id: name.taskId, ...more });
  const headers = { "tessera-deployment": fullName(name) };
  return loadedFrom(await send(`${path}?${query}`, { headers, signal }), MAX_LOADED_BYTES);
}

/** The body of an answer with the name that it has as a file. */
export async function loadedFrom(response: Response, maxBytes: number): Promise<LoadedResult> {
  const filename = filenameOf(response.headers.get("content-disposition") ?? "");
  const bytes = Number(response.headers.get("content-length") ?? 0);
  if (bytes > maxBytes) {
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
