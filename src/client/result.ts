/**
 * Results as they come: text, JSON or a file, told apart by the headers of the
 * answer (`Content-Disposition` goes with files alone), or by what a generated
 * client knows of its endpoints.
 */
import { foreignAnswer, parseObject, reading } from "./refusal.ts";

/** In what form an endpoint answers. */
export type ResultForm = "json" | "text" | "file";

/** A result whose bytes are read as they arrive. */
export interface OpenResult {
  /** Media type, such as `image/png`. */
  readonly type: string;
  /** The file's name; empty where it has none. */
  readonly name: string;
  /** In bytes; undefined where the server does not say. */
  readonly size: number | undefined;
  /** Rejects when the connection breaks. */
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
}

/** Reads a result to its end. */
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

/** A result before its bytes. */
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
  // A deployment sends no page without naming it a file: this is somebody else's.
  if (/^text\/html\b/.test(type) || type === "") {
    throw foreignAnswer(response);
  }
  return /^application\/json\b/.test(type) ? "json" : /^text\/plain\b/.test(type) ? "text" : "file";
}

function contentType({ headers }: Response): string {
  return headers.get("content-type") ?? "";
}

/** The name in `Content-Disposition` (RFC 6266), that of its extended form first. */
function fileName({ headers }: Response): string {
  const disposition = headers.get("content-disposition") ?? "";
  const extended = /;\s*filename\*=UTF-8''([^;\s]+)/i.exec(disposition)?.[1];
  if (extended !== undefined) {
    try {
      return decodeURIComponent(extended);
    } catch {
      // Not encoded as it should be: the plain name is there too.
    }
  }
  return /;\s*filename="([^"]*)"/i.exec(disposition)?.[1] ?? "";
}

/** An answer that has to be a JSON object. */
export async function readJson(response: Response): Promise<Record<string, unknown>> {
  const text = await reading(response.text());
  const json = parseObject(text);
  if (json === undefined) {
    throw foreignAnswer(response, text);
  }
  return json;
}
