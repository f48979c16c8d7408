/** The port through which REST and Connect read large messages in JSON, and which messages may be large. */
import type { DescMessage, Message } from "@bufbuild/protobuf";
import { MAX_JSON_VALUES, MAX_MESSAGE_VALUES } from "../../collections/json-bounds.ts";

/** A message whose arguments were taken out of it. */
export interface LargeMessage {
  /** JSON of the rest. */
  readonly body: Uint8Array;
  /** Gives the decoded message its arguments, as bodies. */
  restore(message: Message): void;
}

/**
 * Takes the arguments out of a large message; undefined where it can be read as it is. Rejects
 * with BODY_MALFORMED or SERVER_BUSY.
 */
export type ReadLarge = (
  body: Uint8Array,
  input: DescMessage,
) => LargeMessage | Promise<LargeMessage> | undefined;

/** JSON values that may stand in a message of this type. */
export function maxValuesOf(input: DescMessage): number {
  return takesArguments(input) ? MAX_JSON_VALUES : MAX_MESSAGE_VALUES;
}

/** Whether it is a call of an endpoint, or a list of such. */
export function takesArguments(input: DescMessage): boolean {
  return isCall(input) || input.fields.some((it) => it.name === "tasks" && isCall(it.message));
}

function isCall(message: DescMessage | undefined): boolean {
  return (
    message?.fields.some(({ name, oneof }) => name === "arguments" && oneof?.name === "input") ??
    false
  );
}
