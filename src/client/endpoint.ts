/** One endpoint of a deployment: calls it, or submits tasks to it. */
import { bodyOf } from "./arguments.ts";
import type { CallOptions, Connection, Sending } from "./connection.ts";
import { millisecondsOf, type TimeSpan } from "./duration.ts";
import { newKey, replaysAlways } from "./idempotency-key.ts";
import { readPieces } from "./pieces.ts";
import { RemoteTask } from "./remote-task.ts";
import { type OpenResult, openResult, type ResultForm, readJson, readResult } from "./result.ts";

/** Options of a submit. */
export interface SubmitOptions extends CallOptions {
  /**
   * A repeated submit with the same key and arguments returns the first task,
   * unless it failed, was cancelled or expired: then it begins a new one.
   * Default: a random key for each submit, so that a submit whose connection
   * breaks can be retried.
   */
  readonly idempotencyKey?: string;
  /** The key returns its first task however that ended. Default: only for random keys. */
  readonly replay?: "always";
  /** From -100 to 100; tasks with a higher priority run first. Default: the endpoint's. */
  readonly priority?: number;
  /** The task starts no earlier than this long from now. Cannot be combined with `runAt`. */
  readonly delay?: TimeSpan;
  /** The task starts no earlier than this. Cannot be combined with `delay`. */
  readonly runAt?: Date;
  /** The task fails if it has not started within this time. Cannot be combined with `startBy`. */
  readonly startWithin?: TimeSpan;
  /** The task fails if it has not started by then. Cannot be combined with `startWithin`. */
  readonly startBy?: Date;
  /**
   * How long the task and its result are kept after its end, within what the
   * operator allows. Default: the deployment's, or the endpoint's.
   */
  readonly retention?: TimeSpan;
  /** A webhook of the deployment, by name, that hears of its end. */
  readonly webhook?: string;
  /**
   * Whose the task is among the callers that share the endpoint, such as the id of a customer; at
   * most 128 characters. Default: nobody's.
   */
  readonly key?: string;
  /** Words of your own by which it is found again: at most 10, each of at most 64 characters. */
  readonly tags?: readonly string[];
}

/** Arguments may be omitted when all of them are optional. */
type Parameters<Arguments, Options> =
  Partial<Arguments> extends Arguments
    ? [args?: Arguments, options?: Options]
    : [args: Arguments, options?: Options];

/** An api that gives its result in pieces. Called as any other, it gives the whole. */
export interface StreamingEndpoint<Arguments, Piece> {
  /**
   * Calls the endpoint and yields the pieces of its result as its function makes them, no
   * faster than they are read: strings of a text, `Uint8Array` of a file, or JSON values.
   * `timeout` is the time to the first piece. Rejects with a `DeploymentError`, also after
   * some pieces. Leaving the iteration ends the call.
   */
  stream(...given: Parameters<Arguments, CallOptions>): AsyncGenerator<Piece, void, undefined>;
}

/** An endpoint that responds in the call itself. */
export interface ApiEndpoint<Arguments, Result> {
  /**
   * Calls the endpoint. The call is retried only when it certainly did not run.
   * Rejects with a `DeploymentError`.
   */
  (...given: Parameters<Arguments, CallOptions>): Promise<Result>;
  /** Calls the endpoint and returns the result as a stream. Rejects with a `DeploymentError`. */
  open(...given: Parameters<Arguments, CallOptions>): Promise<OpenResult>;
}

/**
 * An endpoint whose calls are queued as tasks. A direct call runs as a task and
 * waits for its result.
 */
export interface TaskEndpoint<Arguments, Result, Piece = unknown>
  extends ApiEndpoint<Arguments, Result> {
  /**
   * Queues a task. Retried when the connection breaks; the idempotency key
   * makes sure that it is queued once. Rejects with a `DeploymentError`.
   */
  submit(...given: Parameters<Arguments, SubmitOptions>): Promise<RemoteTask<Result, Piece>>;
  /**
   * Returns a handle on a task that was submitted earlier, here or by another
   * program. Sends no request.
   */
  task(id: string): RemoteTask<Result, Piece>;
}

/** Facts about an endpoint that a generated client has at run time. */
export interface EndpointFacts {
  readonly kind: "api" | "task";
  /** Of the whole; pieces have the same form. */
  readonly result: ResultForm;
  /** True for an endpoint that gives its result in pieces. */
  readonly streams?: boolean;
  /** Its path, as URLs have it, where its service gave it one. Default: a slash and its name. */
  readonly path?: string;
}

/** Creates an endpoint with any name. Without facts, the responses tell what it returns. */
export function createEndpoint(
  connection: Connection,
  name: string,
  facts?: EndpointFacts,
): TaskEndpoint<Readonly<Record<string, unknown>>, unknown> &
  StreamingEndpoint<Readonly<Record<string, unknown>>, unknown> {
  // Of a mounted server, whose requests are tasks, the name is the path.
  const isServer = name.startsWith("/");
  const path = facts?.path ?? (isServer ? encodeURI(name) : `/${encodeURIComponent(name)}`);
  const above = path.replace(/\/$/, "");
  const place = { connection, endpoint: name, path: above, form: facts?.result };
  const read = (response: Response) => readResult(response, facts?.result);

  const submit = async (args: unknown, options: SubmitOptions = {}) => {
    const { idempotencyKey = newKey(), signal, timeout } = options;
    const { contentType, make } = bodyOf(args);
    const json = await connection.send(
      `${above}/submit${submitQuery(options)}`,
      {
        method: "POST",
        body: make,
        headers: {
          "idempotency-key": idempotencyKey,
          ...(isServer && { "tessera-queue": "arguments" }),
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

  const sendingOf = (args: unknown, options: CallOptions, accept?: string): Sending => {
    const { contentType, make } = bodyOf(args);
    const headers = {
      ...(contentType !== undefined && { "content-type": contentType }),
      ...(accept !== undefined && { accept }),
    };
    return { ...options, method: "POST", body: make, headers, repeatable: false };
  };

  const stream = (args?: unknown, options: CallOptions = {}) =>
    readPieces(connection, path, sendingOf(args, options));

  const call = async (args?: unknown, options: CallOptions = {}) => {
    if (facts?.kind !== "task" && !isServer) {
      // As pieces, so that a failure in the middle is told; a file comes with its type.
      return facts?.streams && facts.result !== "file"
        ? wholeOf(stream(args, options), facts.result)
        : connection.send(path, sendingOf(args, options, WHOLE_FIRST), read);
    }
    const task = await submit(args, options);
    return task.wait({ timeout: connection.timeoutMs, ...options });
  };

  return Object.assign(call, {
    open: async (args?: unknown, options: CallOptions = {}) =>
      connection.send(path, sendingOf(args, options), openResult),
    stream,
    submit,
    task: (id: string) => new RemoteTask(place, id, { known: false }),
  });
}

/** What a call accepts that does not know whether its endpoint streams: the whole, if it may choose. */
const WHOLE_FIRST = "application/json, */*;q=0.9";

/** The whole of a streamed result, which is a text or a list of values. */
async function wholeOf(pieces: AsyncIterable<unknown>, form: ResultForm): Promise<unknown> {
  const all: unknown[] = [];
  for await (const piece of pieces) {
    all.push(piece);
  }
  return form === "text" ? all.join("") : all;
}

function submitQuery(options: SubmitOptions): string {
  const { priority, delay, runAt, startWithin, startBy, retention, webhook, key, tags } = options;
  const query = new URLSearchParams();
  if (replaysAlways(options)) {
    query.set("replay", "always");
  }
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
  if (retention !== undefined) {
    query.set("retention", String(millisecondsOf("retention", retention) / 1000));
  }
  if (webhook !== undefined) {
    query.set("webhook", webhook);
  }
  if (key !== undefined) {
    query.set("key", key);
  }
  if (tags !== undefined && tags.length > 0) {
    query.set("tags", tags.map(withoutComma).join());
  }
  return query.size === 0 ? "" : `?${query}`;
}

/** A comma would make two of one. */
function withoutComma(tag: string): string {
  if (tag.includes(",")) {
    throw new TypeError(`tags: ${JSON.stringify(tag)} has a comma, which no tag can have`);
  }
  return tag;
}
