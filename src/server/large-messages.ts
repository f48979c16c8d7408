/** Reads large messages in JSON: their arguments are taken out on another thread, and go on as a body. */
import type { Message } from "@bufbuild/protobuf";
import { MAX_JSON_BYTES_IN_PLACE } from "../service/input/arguments.ts";
import type { Lifted } from "../service/input/lift.ts";
import type { ReaderThreads } from "../service/input/threads.ts";
import { bodyMessage } from "./http/body.ts";
import { type LargeMessage, type ReadLarge, takesArguments } from "./http/large-json.ts";
import { JSON_TYPE } from "./http/problem.ts";
import type { RewriteLarge } from "./rpc/engine/scan.ts";

/** Creates the function that reads them. Without threads, no message is large. */
export function createReadLarge(readers: ReaderThreads | undefined): ReadLarge {
  return (body, input) =>
    readers === undefined || body.length <= MAX_JSON_BYTES_IN_PLACE || !takesArguments(input)
      ? undefined
      : readers.lift(body).then(toLarge);
}

/** Creates the function that rewrites those that the library decodes. */
export function createRewriteLarge(readers: ReaderThreads | undefined): RewriteLarge {
  return ({ data, input, isJson }) =>
    readers === undefined || data.length <= MAX_JSON_BYTES_IN_PLACE || !takesArguments(input)
      ? undefined
      : readers.rewrite(data, isJson ? undefined : input.typeName);
}

type Several = Message & { readonly tasks?: readonly Message[] };

function toLarge({ json, own, tasks }: Lifted): LargeMessage {
  return {
    body: Buffer.from(json),
    restore(message) {
      setBody(message, own);
      for (const [index, task] of ((message as Several).tasks ?? []).entries()) {
        setBody(task, tasks[index]);
      }
    },
  };
}

function setBody(message: Message, text: string | undefined): void {
  if (text !== undefined) {
    const value = bodyMessage(JSON_TYPE, Buffer.from(text));
    Object.assign(message, { input: { case: "body", value } });
  }
}
