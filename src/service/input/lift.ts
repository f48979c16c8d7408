/**
 * Takes the arguments out of a large message in JSON, as text. They can hold a hundred
 * thousand values, which the message needs none of: as a body, they are read on a
 * thread of their own. What is left of the message is small.
 */
import { isUtf8 } from "node:buffer";
import { faultOfJson, MAX_MESSAGE_VALUES } from "../../collections/json-scan.ts";
import { problem } from "../../errors.ts";

/** A message and the arguments that were in it. */
export interface Lifted {
  /** JSON of the message without them. */
  readonly json: string;
  /** JSON of its own arguments; undefined where there are none. */
  readonly own: string | undefined;
  /** Those of its `tasks`. */
  readonly tasks: readonly (string | undefined)[];
}

/** Takes `arguments` and `tasks[].arguments` out of a message. Throws BODY_MALFORMED. */
export function liftArguments(data: Uint8Array): Lifted {
  const fault = faultOfJson(data);
  if (fault !== undefined) {
    throw problem("BODY_MALFORMED", `the body ${fault}`);
  }
  if (!isUtf8(data)) {
    throw problem("BODY_MALFORMED", "the body is not valid JSON: it is not UTF-8");
  }
  const message = parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString());
  const own = take(message);
  const tasks = isObject(message) && Array.isArray(message.tasks) ? message.tasks.map(take) : [];
  const json = JSON.stringify(message);
  const rest = faultOfJson(Buffer.from(json), undefined, MAX_MESSAGE_VALUES);
  if (rest !== undefined) {
    throw problem("BODY_MALFORMED", `without its arguments, the body ${rest}`);
  }
  return { json, own, tasks };
}

/** Removes the arguments of a call; those that are no object, or not alone, stay to be refused. */
function take(call: unknown): string | undefined {
  if (!isObject(call) || !isObject(call.arguments) || Object.hasOwn(call, "body")) {
    return undefined;
  }
  const { arguments: values } = call;
  delete call.arguments;
  return JSON.stringify(values);
}

function isObject(value: unknown): value is { [name: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const detail = cause instanceof Error ? cause.message : String(cause);
    throw problem("BODY_MALFORMED", `the body is not valid JSON: ${detail}`, { cause });
  }
}
