/**
 * A write-behind buffer for the log of one deployment: lines go to the storage in
 * batches and in order, and no writer waits. While the storage does not answer,
 * lines are buffered up to a limit; further ones are dropped and counted.
 */
import type { Log } from "../log/log.ts";
import type { DeploymentKey } from "../storage/hosting/deployment-key.ts";
import type { Logs, NewLogLine } from "../storage/hosting/logs.ts";
import { within } from "../time/race.ts";

/**
 * Delay of the write-behind of service logs: long enough for lines of one moment to share a
 * write, short enough for those who watch.
 */
const LOG_WRITE_DELAY_MS = 200;

/** Lines of a service's log in one write. */
const MAX_LOG_LINES_PER_WRITE = 500;

/** Lines of service logs that wait to be written, of at most 8 KiB each. */
const MAX_HELD_LOG_LINES = 2_000;

/** How long the storage has to take the remaining lines when the node ends. */
const LOG_FLUSH_TIMEOUT_MS = 2_000;

/** Pause after a write of log lines that failed. */
const LOG_RETRY_PAUSE_MS = 2_000;

interface DeploymentLogOptions extends DeploymentKey {
  readonly hosting: Pick<Logs, "appendLogs">;
  readonly nodeId: string;
  readonly now: () => number;
  readonly log: Log;
}

export class DeploymentLog implements AsyncDisposable {
  readonly #options: DeploymentLogOptions;
  #held: NewLogLine[] = [];
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;
  #failing = false;

  constructor(options: DeploymentLogOptions) {
    this.#options = options;
  }

  write(line: Omit<NewLogLine, "timeMs">): void {
    if (this.#held.length >= MAX_HELD_LOG_LINES) {
      this.#dropped += 1;
      return;
    }
    this.#held.push({ ...line, timeMs: this.#options.now() });
    if (this.#held.length >= MAX_LOG_LINES_PER_WRITE && !this.#failing) {
      void this.#flush();
    } else {
      this.#schedule(LOG_WRITE_DELAY_MS);
    }
  }

  /** Writes the buffered lines, as far as the storage takes them in time. */
  async [Symbol.asyncDispose](): Promise<void> {
    await within(this.#writeAll(), LOG_FLUSH_TIMEOUT_MS, () => undefined);
    clearTimeout(this.#timer);
  }

  async #writeAll(): Promise<void> {
    await this.#writing;
    while (this.#held.length > 0 && !this.#failing) {
      await this.#flush();
    }
  }

  #schedule(afterMs: number): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      void this.#flush();
    }, afterMs);
  }

  #flush(): Promise<void> {
    this.#writing ??= this.#write().finally(() => {
      this.#writing = undefined;
      if (this.#held.length > 0) {
        this.#schedule(this.#failing ? LOG_RETRY_PAUSE_MS : 0);
      }
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { hosting, organizationId, deploymentId, nodeId, log, now } = this.#options;
    if (this.#dropped > 0) {
      const text = `${this.#dropped} lines were dropped here: the database did not take them in time`;
      this.#dropped = 0;
      this.#held.push({
        timeMs: now(),
        worker: "",
        revision: 0,
        taskId: "",
        stream: "node",
        level: "warn",
        text,
      });
    }
    const lines = this.#held.slice(0, MAX_LOG_LINES_PER_WRITE);
    try {
      await hosting.appendLogs({ organizationId, deploymentId, nodeId, lines });
      this.#held.splice(0, lines.length);
      this.#failing = false;
    } catch (err) {
      if (!this.#failing) {
        log.warn({ err, deploymentId }, "lines of a deployment's log could not be stored");
      }
      this.#failing = true;
    }
  }
}

/**
 * The node's log for one deployment, copied in part to the deployment's own log,
 * which its owners see: events of their workers, and lines and errors of their
 * functions. Errors of the node itself go to the operator only.
 */
export function sharedLog(log: Log, deploymentId: string, written: DeploymentLog): Log {
  const at =
    (level: "info" | "warn" | "error") =>
    (fields: object, message: string): void => {
      log[level]({ deploymentId, ...fields }, message);
      const text = textOf(fields as LogFields, message);
      if (text !== undefined) {
        const { worker = "", revision = 0, taskId = "" } = fields as LogFields;
        written.write({ worker, revision, taskId, stream: "node", level, text });
      }
    };
  return {
    debug: (fields, message) => log.debug({ deploymentId, ...fields }, message),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
}

interface LogFields {
  readonly worker?: string;
  readonly revision?: number;
  readonly taskId?: string;
  readonly endpoint?: string;
  readonly reason?: string;
  readonly skipped?: number;
  readonly fields?: object;
  readonly err?: unknown;
}

/** The line for the owners; undefined for a line that only the operator sees. */
function textOf(
  { endpoint, reason, skipped, fields, err }: LogFields,
  message: string,
): string | undefined {
  if (err instanceof Error) {
    return undefined;
  }
  if (endpoint !== undefined && err !== undefined) {
    return `${endpoint} failed: ${thrownText(err as Thrown)}`;
  }
  const more = [
    ...(reason === undefined ? [] : [`: ${reason}`]),
    ...(fields === undefined ? [] : [` ${JSON.stringify(fields)}`]),
    ...(err === undefined ? [] : [`: ${thrownText(err as Thrown)}`]),
    ...(skipped === undefined ? [] : [` (${skipped} lines before it were dropped)`]),
  ];
  return `${endpoint === undefined ? "" : `${endpoint}: `}${message}${more.join("")}`;
}

interface Thrown {
  readonly stack?: string;
  readonly message?: string;
}

/** The message, which Python has at the end of a stack, is first: a log shows how a line begins. */
function thrownText({ stack, message = "" }: Thrown): string {
  const [said = ""] = message.split("\n");
  const [begin = ""] = (stack ?? "").split("\n");
  return stack === undefined || begin.includes(said) ? (stack ?? message) : `${message}\n${stack}`;
}
