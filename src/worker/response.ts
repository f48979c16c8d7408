/**
 * What a function says of its answer: `ctx.response`, and a `Response` of the Fetch API that it
 * returns. A task has no caller who waits, so there a status of 400 and above is its failure.
 */
import { faultOfHead, type HeaderField, type ResponseHead } from "../protocol/heads.ts";
import type { CallFailure, SentPayload } from "../protocol/messages.ts";
import type { CallResponse } from "../sdk/context.ts";
import type { EndpointKind } from "../sdk/options.ts";
import { clip, OutputRefused, outputInvalid } from "./failure.ts";
import { type ResultOptions, writeFile } from "./payload.ts";

/** `ctx.response`: made when a function asks for it. */
export class SaidResponse implements CallResponse {
  status: number | undefined;
  readonly headers = new Headers();
}

/** The head of an answer; undefined where nothing is said. Throws an `OutputRefused`. */
export function headOf(
  endpoint: string,
  said: CallResponse | undefined,
  returned?: Response,
): ResponseHead | undefined {
  const status = said?.status ?? (returned?.status === 200 ? undefined : returned?.status);
  const headers: HeaderField[] = [...(said?.headers ?? [])];
  for (const [name, value] of returned?.headers ?? []) {
    const isSaid = name !== "set-cookie" && said?.headers.has(name) === true;
    // The type belongs to the content.
    if (!isSaid && name !== "content-type") {
      headers.push([name, value]);
    }
  }
  if (status === undefined && headers.length === 0) {
    return undefined;
  }
  const head = { ...(status !== undefined && { status }), headers };
  const fault = faultOfHead(head);
  if (fault !== undefined) {
    throw new OutputRefused(outputInvalid(`the response of ${endpoint} cannot be sent: ${fault}`));
  }
  return head;
}

const JSON_BODY = /^application\/json(?:;|$)/i;

/** The content of a returned `Response`: JSON as a value, all else as a file. */
export async function writeResponse(
  response: Response,
  options: ResultOptions,
): Promise<SentPayload> {
  const contentType = response.headers.get("content-type") ?? "application/octet-stream";
  const bytes = await response.bytes();
  if (JSON_BODY.test(contentType) && bytes.length <= options.maxResultBytes && !options.asText) {
    const json = Buffer.from(bytes).toString();
    if (isJson(json)) {
      return { json, files: [] };
    }
  }
  return writeFile(bytes, { contentType }, options);
}

/** Why a task with this answer has failed; undefined when it has not. */
export function failureOfStatus(
  kind: EndpointKind,
  { json, files: [file] }: SentPayload,
  status = 200,
): CallFailure | undefined {
  if (kind !== "task" || status < 400) {
    return undefined;
  }
  const said = file && "data" in file ? Buffer.from(file.data).toString() : json;
  const message = clip(said === "" || said === "null" ? `it answered with ${status}` : said);
  return { code: codeOf(status), reason: "CALL_FAILED", message, status };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    // It is what it is: bytes that say that they are JSON.
    return false;
  }
}

/** Connect's codes by HTTP status; the closest one where Connect has none. */
const CODES: { readonly [status: number]: string } = {
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  408: "deadline_exceeded",
  409: "aborted",
  410: "not_found",
  412: "failed_precondition",
  413: "resource_exhausted",
  424: "failed_precondition",
  428: "failed_precondition",
  429: "resource_exhausted",
  499: "canceled",
  501: "unimplemented",
  502: "unavailable",
  503: "unavailable",
  504: "deadline_exceeded",
};

function codeOf(status: number): string {
  return CODES[status] ?? (status < 500 ? "invalid_argument" : "internal");
}
