/** One endpoint: called, or submitted as a task. */
import { bodyOf } from "./arguments.ts";
import type { CallOptions, Connection } from "./connection.ts";
import { millisecondsOf, type TimeSpan } from "./duration.ts";
import { newKey } from "./idempotency-key.ts";
import { RemoteTask } from "./remote-task.ts";
import { type OpenResult, openResult, type ResultForm, readJson, readResult } from "./result.ts";

/** Options of a submit. */
export interface SubmitOptions extends CallOptions {
  /**
   * The same key with the same arguments gives the task that was submitted
   * first. Default: a key of its own for each submit, so that one whose
   * connection breaks can be sent again.
   */
  readonly idempotencyKey?: string;
  /** Tasks of a higher priority run first; from -100 to 100. Default: the endpoint's. */
  readonly priority?: number;
  /** It starts no sooner than so long from now. Not together with `runAt`. */
  readonly delay?: TimeSpan;
  /** It starts no sooner. */
  readonly runAt?: Date;
  /** It fails unless it has started within so long. Not together with `startBy`. */
  readonly startWithin?: TimeSpan;
  /** It fails unless it has started by then. */
  readonly startBy?: Date;
}

/** Arguments may be left out where none of them has to be given. */
type Parameters<Arguments, Options> =
  Partial<Arguments> extends Arguments
    ? [args?: Arguments, options?: Options]
    : [args: Arguments, options?: Options];

/** An endpoint that answers in the call. */
export interface ApiEndpoint<Arguments, Result> {
  /**
   * Calls it. The call is never sent twice unless it certainly did not run the
   * first time. Rejects with a `DeploymentError`.
   */
  (...given: Parameters<Arguments, CallOptions>): Promise<Result>;
  /** Calls it, and leaves the result to be read as it arrives. */
  open(...given: Parameters<Arguments, CallOptions>): Promise<OpenResult>;
}

/** An endpoint whose calls are queued. Called directly, it runs as a task and is waited for. */
export interface TaskEndpoint<Arguments, Result> extends ApiEndpoint<Arguments, Result> {
  /** Queues a task. Safe to have broken off: it is sent again, and queued once. */
  submit(...given: Parameters<Arguments, SubmitOptions>): Promise<RemoteTask<Result>>;
  /** A task that was submitted before, here or elsewhere. Asks the server nothing. */
  task(id: string): RemoteTask<Result>;
}

/** What a generated client knows of an endpoint at run time. */
export interface EndpointFacts {
  readonly kind: "api" | "task";
  readonly result: ResultForm;
}

/** Makes an endpoint of any name. What is not known of it, the answers tell. */
export function createEndpoint(
  connection: Connection,
  name: string,
  facts?: EndpointFacts,
): TaskEndpoint<Readonly<Record<string, unknown>>, unknown> {
  const path = `/${encodeURIComponent(name)}`;
  const place = { connection, endpoint: name, path, form: facts?.result };
  const read = (response: Response) => readResult(response, facts?.result);

  const submit = async (args: unknown, options: SubmitOptions = {}) => {
    const { idempotencyKey = newKey(), signal, timeout } = options;
    const { contentType, make } = bodyOf(args);
    const json = await connection.send(
      `${path}/submit${scheduleQuery(options)}`,
      {
        method: "POST",
        body: make,
        headers: {
          "idempotency-key": idempotencyKey,
          ...(contentType !== undefined && { "content-type": contentType }),
        },
        repeatable: true,
        ...(signal && { signal }),
        ...(timeout !== undefined && { timeout }),
      },
      readJson,
    );
    return new RemoteTask(place, String(json.task_id), { known: true });
  };

  const send = <T>(
    args: unknown,
    options: CallOptions,
    take: (response: Response) => Promise<T> | T,
  ): Promise<T> => {
    const { contentType, make } = bodyOf(args);
    const headers = { ...(contentType !== undefined && { "content-type": contentType }) };
    return connection.send(
      path,
      { ...options, method: "POST", body: make, headers, repeatable: false },
      take,
    );
  };

  const call = async (args?: unknown, options: CallOptions = {}) => {
    if (facts?.kind !== "task") {
      return send(args, options, read);
    }
    const task = await submit(args, options);
    return task.wait({ timeout: connection.timeoutMs, ...options });
  };

  return Object.assign(call, {
    open: async (args?: unknown, options: CallOptions = {}) => send(args, options, openResult),
    submit,
    task: (id: string) => new RemoteTask(place, id, { known: false }),
  });
}

function scheduleQuery({ priority, delay, runAt, startWithin, startBy }: SubmitOptions): string {
  const query = new URLSearchParams();
  if (priority !== undefined) {
    query.set("priority", String(priority));
  }
  if (delay !== undefined) {
    query.set("delay", String(millisecondsOf("delay", delay) / 1000));
  }
  if (runAt !== undefined) {
    query.set("run_at", runAt.toISOString());
  }
  if (startWithin !== undefined) {
    query.set("start_within", String(millisecondsOf("startWithin", startWithin) / 1000));
  }
  if (startBy !== undefined) {
    query.set("start_by", startBy.toISOString());
  }
  return query.size === 0 ? "" : `?${query}`;
}
