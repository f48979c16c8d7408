/**
 * Reads messages in JSON that take arguments: these are taken out as text and go on as a body, so
 * that their numbers arrive as they were sent; out of large messages on another thread.
 */
import type { Message } from "@bufbuild/protobuf";
import { ARGUMENTS_TYPE } from "../service/input/arguments-type.ts";
import { type Lifted, liftArguments } from "../service/input/lift.ts";
import { MAX_JSON_BYTES_IN_PLACE } from "../service/input/object-reader.ts";
import { rewritten } from "../service/input/rewrite.ts";
import type { ReaderThreads } from "../service/input/threads.ts";
import { bodyMessage } from "./http/body.ts";
import { type LargeMessage, type ReadLarge, takesArguments } from "./http/large-json.ts";
import type { RewriteLarge } from "./rpc/engine/scan.ts";

/** Creates the function that reads them, without threads in place. */
export function createReadLarge(readers: ReaderThreads | undefined): ReadLarge {
  return (body, input) => {
    if (!takesArguments(input)) {
      return undefined;
    }
    return readers === undefined || body.length <= MAX_JSON_BYTES_IN_PLACE
      ? toLarge(liftArguments(body))
      : readers.lift(body).then(toLarge);
  };
}

/** Creates the function that rewrites those that the library decodes; small ones in binary form stay. */
export function createRewriteLarge(readers: ReaderThreads | undefined): RewriteLarge {
  return ({ data, input, isJson }) => {
    if (!takesArguments(input)) {
      return undefined;
    }
    if (readers === undefined || data.length <= MAX_JSON_BYTES_IN_PLACE) {
      return isJson ? rewritten(data, undefined) : undefined;
    }
    return readers.rewrite(data, isJson ? undefined : input.typeName);
  };
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
    const value = bodyMessage(ARGUMENTS_TYPE, Buffer.from(text));
    Object.assign(message, { input: { case: "body", value } });
  }
}
