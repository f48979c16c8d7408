/**
 * What a function writes to the output of its process while it runs a call, by `console.log` or
 * otherwise, becomes lines of that call's log. Output outside of calls, and of functions that take
 * several calls at once, goes where it always goes, and the node takes it line by line.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import type { LogLevel } from "../protocol/messages.ts";

/** Text without the end of a line that is kept; a longer one becomes a line. */
const MAX_PARTIAL_CHARACTERS = 8_192;

/** A call that runs; without an output once it has ended. */
interface OutputOwner {
  readonly output: OutputLines | undefined;
}

const current = new AsyncLocalStorage<OutputOwner>();

/** Runs a function whose output is that of a call. */
export function withOutputOf<Returned>(call: OutputOwner, run: () => Returned): Returned {
  return current.run(call, run);
}

/** The lines of one call's output. */
export class OutputLines {
  readonly #log: (level: LogLevel, line: string) => void;
  readonly #partial = { info: "", warn: "" };

  /** `log` takes whole lines. */
  constructor(log: (level: LogLevel, line: string) => void) {
    this.#log = log;
  }

  write(level: "info" | "warn", text: string): void {
    const lines = `${this.#partial[level]}${text}`.split("\n");
    const rest = lines.pop() ?? "";
    for (const line of lines) {
      this.#log(level, shown(line));
    }
    const isLong = rest.length > MAX_PARTIAL_CHARACTERS;
    this.#partial[level] = isLong ? "" : rest;
    if (isLong) {
      this.#log(level, shown(rest));
    }
  }

  /** Logs what was written without the end of a line. */
  end(): void {
    for (const level of ["info", "warn"] as const) {
      if (this.#partial[level] !== "") {
        this.#log(level, shown(this.#partial[level]));
      }
    }
  }
}

/** Takes the output of calls from now on. */
export function takeOutputOfCalls(): void {
  take(process.stdout, "info");
  take(process.stderr, "warn");
}

function take(stream: NodeJS.WriteStream, level: "info" | "warn"): void {
  const write = stream.write.bind(stream) as (...given: unknown[]) => boolean;
  const taken = (...given: unknown[]): boolean => {
    const output = current.getStore()?.output;
    const [chunk] = given;
    if (output === undefined || !(typeof chunk === "string" || chunk instanceof Uint8Array)) {
      return write(...given);
    }
    output.write(level, typeof chunk === "string" ? chunk : Buffer.from(chunk).toString());
    const done = given.findLast((one) => typeof one === "function");
    if (done !== undefined) {
      // A writer that goes on when it is done leaves the event loop its turns.
      setImmediate(done as () => void);
    }
    return true;
  };
  stream.write = taken as typeof stream.write;
}

/** What a terminal would show of a line that returns to its beginning, as a progress bar does. */
function shown(line: string): string {
  return line.slice(line.replace(/\r$/, "").lastIndexOf("\r") + 1).replace(/\r$/, "");
}
