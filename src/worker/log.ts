/** `ctx.log` of one call, with a limit of lines and of their length. */

import { type LogLevel, MAX_LOG_TEXT_CHARACTERS } from "../protocol/messages.ts";
import type { LogFields, TaskLog } from "../sdk/context.ts";
import type { Channel } from "./channel.ts";

/** Lines that one call may write by `ctx.log`. */
const MAX_ATTEMPT_LOG_LINES = 1000;

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

  /** Drops everything that is logged from now on: the call has ended. */
  close(): void {
    this.#closed = true;
  }

  #writer(level: LogLevel) {
    return (message: string, fields?: LogFields): void => this.#write(level, message, fields);
  }

  #write(level: LogLevel, message: unknown, fields: LogFields | undefined): void {
    if (this.#closed || this.#lines > MAX_ATTEMPT_LOG_LINES) {
      return;
    }
    this.#lines += 1;
    if (this.#lines > MAX_ATTEMPT_LOG_LINES) {
      this.#send(
        "warn",
        `more than ${MAX_ATTEMPT_LOG_LINES} lines; the rest of this log is dropped`,
      );
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
  return text.length > MAX_LOG_TEXT_CHARACTERS
    ? `${text.slice(0, MAX_LOG_TEXT_CHARACTERS - 1)}…`
    : text;
}

/** The fields as JSON. Fields that JSON cannot carry must not fail the call. */
function fieldsJson(fields: LogFields): string | undefined {
  let json: string | undefined;
  try {
    json = JSON.stringify(fields);
  } catch (err) {
    return JSON.stringify({ dropped: clip(`fields that JSON cannot carry: ${err}`) });
  }
  if (json !== undefined && json.length > MAX_LOG_TEXT_CHARACTERS) {
    return JSON.stringify({ dropped: `fields of more than ${MAX_LOG_TEXT_CHARACTERS} characters` });
  }
  return json;
}
