/**
 * The head of the request that a function is called by, and of the answer that it gives: they
 * travel beside arguments and results, and cost nothing where there are none.
 *
 * A worker's head is hostile. Its reader applies `faultOfHead`; which of its headers reach a
 * caller is decided where the answer is sent (`src/server/http/response-head.ts`).
 */

/** A name in lower case, and one value; a name may occur several times. */
export type HeaderField = readonly [name: string, value: string];

/** The request that a function is shown. */
export interface RequestHead {
  readonly method: string;
  /** With scheme, host and query. */
  readonly url: string;
  readonly headers: readonly HeaderField[];
  /** The address of the caller; empty when unknown. */
  readonly client: string;
}

/** What a function says of its answer. */
export interface ResponseHead {
  /** From 200 to 599. Default: 200. */
  readonly status?: number;
  readonly headers: readonly HeaderField[];
}

/** Headers of one head. */
export const MAX_HEAD_FIELDS = 100;

/** Names and values of the headers of one head. */
export const MAX_HEAD_BYTES = 16 * 1024;

/** JSON text of a head, however it is escaped. */
export const MAX_HEAD_JSON_BYTES = 4 * MAX_HEAD_BYTES;

/** The name of a header (RFC 9110, section 5.6.2), in lower case. */
const NAME = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;

/** A value without control characters (RFC 9110, section 5.5), in the letters that HTTP has. */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/** The headers of a message of `node:http`, whose `rawHeaders` alternate names and values. */
export function* fieldsOf(rawHeaders: readonly string[]): Generator<HeaderField> {
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [name = "", value = ""] = rawHeaders.slice(index, index + 2);
    yield [name, value];
  }
}

export function isHeaderName(name: unknown): name is string {
  return typeof name === "string" && NAME.test(name);
}

/** What is wrong with what a function says of its answer; undefined for nothing. */
export function faultOfHead({ status = 200, headers }: ResponseHead): string | undefined {
  if (!Number.isInteger(status) || status < 200 || status > 599) {
    return `the status is ${status}, and must be from 200 to 599`;
  }
  if (headers.length > MAX_HEAD_FIELDS) {
    return `it has ${headers.length} headers; the limit is ${MAX_HEAD_FIELDS}`;
  }
  let bytes = 0;
  for (const [name, value] of headers) {
    if (!NAME.test(name)) {
      return `${JSON.stringify(name.slice(0, 64))} is no name of a header in lower case`;
    }
    if (!VALUE.test(value)) {
      return `the header ${name.slice(0, 64)} has characters that HTTP cannot carry`;
    }
    bytes += name.length + value.length;
  }
  return bytes > MAX_HEAD_BYTES
    ? `its headers have ${bytes} bytes; the limit is ${MAX_HEAD_BYTES}`
    : undefined;
}
