/**
 * What the workers of one deployment write, on its way into the storage: in
 * batches, in order, and never waited for. While the storage does not answer,
 * lines are held up to a limit, and those that come then are counted instead.
 */
import type { Log } from "../log/log.ts";
import type { DeploymentKey } from "../storage/hosting/deployment-key.ts";
import type { Logs, NewLogLine } from "../storage/hosting/logs.ts";

/** Long enough for lines of one moment to share a write, short enough for who watches. */
const WRITE_AFTER_MS = 200;

/** Lines of one write. */
const MAX_BATCH = 500;

/** Lines that are held, of at most 8 KiB each. */
const MAX_HELD = 2_000;

/** The storage has so long to take what is left when the node ends. */
const END_MS = 2_000;

/** Pause after a write that failed. */
const AGAIN_MS = 2_000;

export interface DeploymentLogOptions extends DeploymentKey {
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
    if (this.#held.length >= MAX_HELD) {
      this.#dropped += 1;
      return;
    }
    this.#held.push({ ...line, timeMs: this.#options.now() });
    if (this.#held.length >= MAX_BATCH && !this.#failing) {
      void this.#flush();
    } else {
      this.#schedule(WRITE_AFTER_MS);
    }
  }

  /** Writes what is held, as far as the storage takes it in time. */
  async [Symbol.asyncDispose](): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const timeUp = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, END_MS);
    });
    await Promise.race([this.#writeAll(), timeUp]);
    clearTimeout(timer);
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
        this.#schedule(this.#failing ? AGAIN_MS : 0);
      }
    });
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { hosting, organizationId, deploymentId, nodeId, log, now } = this.#options;
    if (this.#dropped > 0) {
      const text = `${this.#dropped} lines were dropped here: the database did not take them in time`;
      this.#dropped = 0;
      this.#held.push({ timeMs: now(), worker: "", revision: 0, stream: "node", text });
    }
    const lines = this.#held.slice(0, MAX_BATCH);
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
 * The node's log of one deployment, of which those whose deployment it is see
 * what concerns them: what becomes of their workers, and what their functions
 * log and throw. Errors of the node itself are for its operator.
 */
export function sharedLog(log: Log, deploymentId: string, written: DeploymentLog): Log {
  const at =
    (level: "info" | "warn" | "error") =>
    (fields: object, message: string): void => {
      log[level]({ deploymentId, ...fields }, message);
      const text = textOf(fields as LogFields, message);
      if (text !== undefined) {
        const { worker = "", revision = 0 } = fields as LogFields;
        written.write({ worker, revision, stream: "node", text });
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
  readonly endpoint?: string;
  readonly reason?: string;
  readonly fields?: object;
  readonly err?: unknown;
}

/** One line; undefined for what is for the operator only. */
function textOf({ endpoint, reason, fields, err }: LogFields, message: string): string | undefined {
  if (err instanceof Error) {
    return undefined;
  }
  const { stack, message: thrown } = (err ?? {}) as { stack?: string; message?: string };
  const more = [
    ...(reason === undefined ? [] : [`: ${reason}`]),
    ...(fields === undefined ? [] : [` ${JSON.stringify(fields)}`]),
    ...(err === undefined ? [] : [`: ${stack ?? thrown}`]),
  ];
  return `${endpoint === undefined ? "" : `${endpoint}: `}${message}${more.join("")}`;
}
