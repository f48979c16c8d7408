/** The log of one call, bounded in lines and in the length of a line. */

import type { LogLevel } from "../protocol/messages.ts";
import type { LogFields, TaskLog } from "../sdk/context.ts";
import type { Channel } from "./channel.ts";

const MAX_LINES = 1000;
/** In UTF-16 units, for the message and for the JSON text of the fields each. */
const MAX_LENGTH = 8192;

export class CallLog implements TaskLog {
  readonly debug = this.#writer("debug");
  readonly info = this.#writer("info");
  readonly warn = this.#writer("warn");
  readonly error = this.#writer("error");
  readonly #channel: Channel;
  readonly #id: number;
  #lines = 0;
  #closed = false;

  constructor(channel: Channel, id: number) {
    this.#channel = channel;
    this.#id = id;
  }

  /** What is logged after the end of the call is dropped. */
  close(): void {
    this.#closed = true;
  }

  #writer(level: LogLevel) {
    return (message: string, fields?: LogFields): void => this.#write(level, message, fields);
  }

  #write(level: LogLevel, message: unknown, fields: LogFields | undefined): void {
    if (this.#closed || this.#lines > MAX_LINES) {
      return;
    }
    this.#lines += 1;
    if (this.#lines > MAX_LINES) {
      this.#send("warn", `more than ${MAX_LINES} lines; the rest of this log is dropped`);
    } else {
      this.#send(level, clip(String(message)), fields && fieldsJson(fields));
    }
  }

  #send(level: LogLevel, message: string, json?: string): void {
    const line = { type: "log", id: this.#id, level, message } as const;
    this.#channel.send(json === undefined ? line : { ...line, fieldsJson: json });
  }
}

function clip(text: string): string {
  return text.length > MAX_LENGTH ? `${text.slice(0, MAX_LENGTH - 1)}…` : text;
}

/** A log line must not fail the call that writes it, whatever its fields are. */
function fieldsJson(fields: LogFields): string | undefined {
  let json: string | undefined;
  try {
    json = JSON.stringify(fields);
  } catch (err) {
    return JSON.stringify({ dropped: clip(`fields that JSON cannot carry: ${err}`) });
  }
  if (json !== undefined && json.length > MAX_LENGTH) {
    return JSON.stringify({ dropped: `fields of more than ${MAX_LENGTH} characters` });
  }
  return json;
}
