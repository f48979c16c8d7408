/** Validates what a worker says of an answer: the status and the headers of its head. */
import type { Attachments } from "../../protocol/attachments.ts";
import {
  faultOfHead,
  type HeaderField,
  MAX_HEAD_FIELDS,
  MAX_HEAD_JSON_BYTES,
  type ResponseHead,
} from "../../protocol/heads.ts";
import { isFields, listOf, parseJson } from "./untrusted.ts";

/** Values in a head: its members, and three for each header. */
const MAX_HEAD_VALUES = 8 + 3 * MAX_HEAD_FIELDS;

/** The head in an attachment, as JSON text; undefined for anything that no honest worker sends. */
export function readHead(value: unknown, attachments: Attachments): ResponseHead | undefined {
  const text = attachments.take(value, MAX_HEAD_JSON_BYTES);
  return text && headOf(text);
}

/** The head in JSON text; undefined for anything else. */
function headOf(text: Buffer): ResponseHead | undefined {
  const head = parseJson(text, MAX_HEAD_VALUES);
  if (!isFields(head)) {
    return undefined;
  }
  const { status } = head;
  const headers = listOf(head.headers, MAX_HEAD_FIELDS, fieldOf);
  if (headers === undefined || (status !== undefined && typeof status !== "number")) {
    return undefined;
  }
  const read = status === undefined ? { headers } : { status, headers };
  return faultOfHead(read) === undefined ? read : undefined;
}

function fieldOf(field: unknown): HeaderField | undefined {
  if (!Array.isArray(field) || field.length !== 2) {
    return undefined;
  }
  const [name, value] = field as unknown[];
  return typeof name === "string" && typeof value === "string" ? [name, value] : undefined;
}
