/**
 * Results of tasks, from the path of their endpoint (`GET /{endpoint}/get`), which for a server is
 * its name: as the function
 * returned them, of any size; and arguments (`GET /{endpoint}/arguments`) as they were submitted.
 * The platform's own host takes such paths with the name of the deployment in a header.
 */
import { queryOptions } from "@tanstack/react-query";
import { send } from "./send.ts";
import { fullName, type TaskName } from "./tasks.ts";

/** Of a longer text or JSON the page loads the beginning: its browser would stand still over it. */
const MAX_TEXT_BYTES = 4 * 1024 * 1024;
/** A picture, a sound or a film, which the browser shows by itself. */
const MAX_MEDIA_BYTES = 64 * 1024 * 1024;

/** The most that an answer of a type loads into a page. */
type MaxBytes = (type: string) => number;

const maxShownBytes: MaxBytes = (type) =>
  /^(?:image|audio|video)\//.test(type) ? MAX_MEDIA_BYTES : MAX_TEXT_BYTES;

export interface LoadedResult {
  /** With its content type. Of one that is too large, its beginning. */
  readonly blob: Blob;
  readonly isWhole: boolean;
  /** Undefined where the beginning does not tell. */
  readonly bytes: number | undefined;
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

/** The arguments of a task; null where they are too large for a page. */
export const argumentsOf = (name: TaskName, endpoint: string) =>
  queryOptions({
    queryKey: ["arguments", name.organization, name.deployment, name.taskId],
    queryFn: async ({ signal }) => {
      const { blob, isWhole } = await load(name, pathOf(endpoint, "arguments"), signal);
      return isWhole ? partsOf(await blob.text()) : null;
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

/** The whole result of a task, or a file of its arguments, to be saved. */
export const wholeOf =
  (name: TaskName, endpoint: string, file?: number) => async (): Promise<Blob> =>
    (
      await ask(
        name,
        pathOf(endpoint, file === undefined ? "get" : "arguments"),
        file === undefined ? {} : { file: String(file) },
      )
    ).blob();

function ask(
  name: TaskName,
  path: string,
  more: Readonly<Record<string, string>>,
  signal?: AbortSignal,
): Promise<Response> {
  const query = new URLSearchParams({ task_id: name.taskId, ...more });
  const headers = { "tessera-deployment": fullName(name) };
  return send(`${path}?${query}`, { headers, ...(signal && { signal }) });
}

const load = async (
  name: TaskName,
  path: string,
  signal: AbortSignal,
  more: Readonly<Record<string, string>> = {},
): Promise<LoadedResult> => loadedFrom(await ask(name, path, more, signal), maxShownBytes);

/** The body of an answer, or its beginning, with the name that it has as a file. */
export async function loadedFrom(response: Response, maxBytes: MaxBytes): Promise<LoadedResult> {
  const { headers, body } = response;
  const filename = filenameOf(headers.get("content-disposition") ?? "");
  const type = headers.get("content-type") ?? "";
  const max = maxBytes(type);
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = body?.getReader();
  // A compressed answer does not tell its length: it is counted.
  for (;;) {
    const { value } = (await reader?.read()) ?? {};
    if (value === undefined) {
      return { blob: new Blob(parts, { type }), isWhole: true, bytes, filename };
    }
    parts.push(value.subarray(0, max - bytes));
    bytes += value.length;
    if (bytes > max) {
      void reader?.cancel();
      const told = headers.has("content-encoding") ? null : headers.get("content-length");
      const length = told === null ? undefined : Number(told);
      return { blob: new Blob(parts, { type }), isWhole: false, bytes: length, filename };
    }
  }
}

/** The file name of a `Content-Disposition` (RFC 6266); the extended form goes before. */
function filenameOf(disposition: string): string {
  const [, extended] = /filename\*=UTF-8''([^;]+)/i.exec(disposition) ?? [];
  const [, plain = ""] = /filename="((?:[^"\\]|\\.)*)"/i.exec(disposition) ?? [];
  return extended === undefined ? plain.replace(/\\(.)/g, "$1") : decodeURIComponent(extended);
}
