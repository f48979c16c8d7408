/**
 * Takes the arguments out of a message in JSON, as text: a `Struct` of the message would round
 * their numbers, and they can hold a hundred thousand values, which the message needs none of. As
 * a body, they arrive as they were sent, large ones read on a thread of their own. What is left of
 * the message is small.
 */
import { isUtf8 } from "node:buffer";
import { textBetween } from "../../collections/bytes.ts";
import { faultOfJson, MAX_MESSAGE_VALUES } from "../../collections/json-bounds.ts";
import { JsonFault, type ScannedJson, scanJson } from "../../collections/json-scan.ts";
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
  if (!isUtf8(data)) {
    throw problem("BODY_MALFORMED", "the body is not valid JSON: it is not UTF-8");
  }
  const { rest, own, whole } = take(data);
  const tasks: (string | undefined)[] = [];
  const members = rest.map(([name, text]): Member => {
    if (name !== "tasks" || !text.startsWith("[")) {
      return [name, text];
    }
    const list = Buffer.from(text);
    const parts = (scan(list, true).elements ?? []).map((element) => {
      const part = take(list.subarray(element.start, element.end));
      tasks.push(part.own);
      return part.whole ?? textOf(part.rest);
    });
    return [name, `[${parts.join(",")}]`];
  });
  const json = whole ?? textOf(members);
  const left = faultOfJson(Buffer.from(json), undefined, MAX_MESSAGE_VALUES);
  if (left !== undefined) {
    throw problem("BODY_MALFORMED", `without its arguments, the body ${left}`);
  }
  return { json, own, tasks };
}

/** The name of a member, and the text of its value. */
type Member = readonly [name: string, text: string];

interface Taken {
  /** The members without the arguments of a call. */
  readonly rest: readonly Member[];
  /** The arguments. */
  readonly own: string | undefined;
  /** The text of what has no members. */
  readonly whole: string | undefined;
}

/** Removes the arguments of a call; those that are no object, or not alone, stay to be refused. */
function take(data: Uint8Array): Taken {
  const { members } = scan(data, false);
  if (members === undefined) {
    return { rest: [], own: undefined, whole: textBetween(data, 0, data.length) };
  }
  // Of members with one name, the last one counts.
  const texts = new Map(
    members.map(({ name, start, end }) => [name, textBetween(data, start, end)]),
  );
  const own = texts.get("arguments");
  const isTaken = own?.startsWith("{") && !texts.has("body");
  if (isTaken) {
    texts.delete("arguments");
  }
  return { rest: [...texts], own: isTaken ? own : undefined, whole: undefined };
}

function textOf(members: readonly Member[]): string {
  return `{${members.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(",")}}`;
}

function scan(data: Uint8Array, elements: boolean): ScannedJson {
  try {
    // The arguments may be those of a service in Python; their reader knows.
    return scanJson(data, { constants: true, elements });
  } catch (err) {
    throw err instanceof JsonFault ? problem("BODY_MALFORMED", `the body ${err.message}`) : err;
  }
}
