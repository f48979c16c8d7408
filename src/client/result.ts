/**
 * Decodes results: text, JSON or a file, told apart by the response's headers
 * (only files have `Content-Disposition`) or by the facts of a generated
 * client.
 */
import { foreignAnswer, parseObject, reading } from "./refusal.ts";

/** The form of an endpoint's results. */
export type ResultForm = "json" | "text" | "file";

/** A result whose bytes are read as they arrive. */
export interface OpenResult {
  /** Media type, such as `image/png`. */
  readonly type: string;
  /** The file's name; empty if it has no name. */
  readonly name: string;
  /** In bytes; undefined when the server does not send it. */
  readonly size: number | undefined;
  /** Rejects when the connection breaks. */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** Reads a complete result. */
export async function readResult(response: Response, form = formOf(response)): Promise<unknown> {
  if (form === "text") {
    return reading(response.text());
  }
  const type = contentType(response);
  if (form === "file") {
    const blob = await reading(response.blob());
    return new File([blob], fileName(response), { type });
  }
  const text = await reading(response.text());
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw foreignAnswer(response, text);
  }
}

/** Returns a result whose bytes have not been read yet. */
export function openResult(response: Response): OpenResult {
  formOf(response);
  const length = response.headers.get("content-length");
  return {
    type: contentType(response),
    name: fileName(response),
    size: length === null ? undefined : Number(length),
    stream: response.body ?? new Blob([]).stream(),
  };
}

function formOf(response: Response): ResultForm {
  const { headers } = response;
  const type = contentType(response);
  if (headers.has("content-disposition")) {
    return "file";
  }
  // A deployment sends a page only as a named file, so this came from something
  // else.
  if (/^text\/html\b/.test(type) || type === "") {
    throw foreignAnswer(response);
  }
  return /^application\/json\b/.test(type) ? "json" : /^text\/plain\b/.test(type) ? "text" : "file";
}

function contentType({ headers }: Response): string {
  return headers.get("content-type") ?? "";
}

/** The name in `Content-Disposition` (RFC 6266); the extended form takes precedence. */
function fileName({ headers }: Response): string {
  const disposition = headers.get("content-disposition") ?? "";
  const extended = /;\s*filename\*=UTF-8''([^;\s]+)/i.exec(disposition)?.[1];
  if (extended !== undefined) {
    try {
      return decodeURIComponent(extended);
    } catch {
      // Wrongly encoded: use the plain name.
    }
  }
  return /;\s*filename="([^"]*)"/i.exec(disposition)?.[1] ?? "";
}

/** Reads a response that has to be a JSON object. */
export async function readJson(response: Response): Promise<Record<string, unknown>> {
  const text = await reading(response.text());
  const json = parseObject(text);
  if (json === undefined) {
    throw foreignAnswer(response, text);
  }
  return json;
}
