/**
 * Tasks that are requests to mounted servers: each is sent to the server of its worker over a
 * connection of that worker, and the answer is its result. The arguments are a request
 * (`service/mounts.ts`); the head beside them is what the platform knows of the caller.
 *
 *   below 400           the result
 *   408, 425, 429       a failure, tried again as the mount's retries say
 *   other 4xx           a failure for good: the same request would be answered the same
 *   5xx                 a failure, tried again
 *   no whole answer     a failure, tried again, unless the worker has ended meanwhile
 *
 * A failed attempt has its answer as well, if that is short, so that callers can read it.
 */

import { type Agent, type ClientRequest, type IncomingMessage, request } from "node:http";
import { readAtMost } from "../../collections/bytes.ts";
import { Problem, problem } from "../../errors.ts";
import { faultOfHead, type ResponseHead } from "../../protocol/heads.ts";
import { type CallFailure, MAX_INLINE_FILE_BYTES, type Payload } from "../../protocol/messages.ts";
import { BlobMissing } from "../../storage/blobs.ts";
import { traceHeaders } from "../../tracing/context.ts";
import type { ExecuteOptions, Execution } from "./execution.ts";
import { endWith, type Keepers } from "./transfers.ts";

/**
 * How long after the end of a connection the end of its worker may become known, which then is
 * why.
 */
const WORKER_END_NOTICE_MS = 1_000;
/** Answer to a failed request that is kept for its caller; a longer one is not. */
const MAX_FAILED_ANSWER_BYTES = MAX_INLINE_FILE_BYTES;
/** What the message of a failure quotes of an answer. */
const MAX_QUOTED_CHARACTERS = 500;

/** What is of one connection, or said anew where the answer is sent. */
const NOT_STORED =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|tessera-.*)$/;

/** Client errors after which the same request may succeed. */
const WORTH_RETRYING: ReadonlySet<number> = new Set([408, 425, 429]);

/** The codes of failed answers, by their status; others have that of their class. */
const CODES: { readonly [status: number]: string } = {
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  409: "aborted",
  412: "failed_precondition",
  429: "resource_exhausted",
  501: "unimplemented",
  503: "unavailable",
  504: "deadline_exceeded",
};

export interface MountRequestsOptions {
  readonly keepers: Pick<Keepers, "task">;
  /** Limit of the body of an answer, in bytes. */
  readonly maxFileBytes: number;
}

/** The calls of the worker. */
interface MountRequestHost {
  /** Removes an execution from those under way; undefined when it has already ended. */
  settle(id: number): Execution | undefined;
  /** Whether the process of the servers has ended since then, and its worker has not. */
  hasRestartedSince(ms: number): boolean;
}

/** A task for a mounted server, which its worker's agent connects to. */
type MountCall = Pick<ExecuteOptions, "endpoint" | "taskId" | "attempt" | "trace" | "arguments"> & {
  readonly agent: Agent;
};

/** The arguments of such a task. */
interface MountArguments {
  readonly method: string;
  readonly path: string;
  readonly headers?: { readonly [name: string]: string };
}

/** What a server answered. */
interface Answer {
  readonly status: number;
  /** Undefined for the answer of a failure that is too long. */
  readonly payload: Payload | undefined;
}

export class MountRequests {
  readonly #options: MountRequestsOptions;
  readonly #host: MountRequestHost;
  readonly #underWay = new Map<number, AbortController>();

  /** Those whose connection has ended. */
  #broken = 0;

  constructor(options: MountRequestsOptions, host: MountRequestHost) {
    this.#options = options;
    this.#host = host;
  }

  get size(): number {
    return this.#underWay.size;
  }

  has(id: number): boolean {
    return this.#underWay.has(id);
  }

  /** Sends the request of an execution, which ends with the answer. */
  begin(execution: Execution, call: MountCall): void {
    const { id } = execution.call;
    const ended = new AbortController();
    this.#underWay.set(id, ended);
    execution.isInWorker = true;
    this.#answer(call, ended.signal).then(
      (answer) => this.#answered(id, call, answer),
      (thrown) => this.#failed(id, call, thrown, ended.signal),
    );
  }

  /** The execution has ended: nobody waits for the answer. */
  ended(id: number): void {
    this.#underWay.get(id)?.abort();
    this.#underWay.delete(id);
  }

  #answered(id: number, { endpoint }: MountCall, { status, payload }: Answer): void {
    if (!this.#underWay.delete(id)) {
      void (payload && this.#options.keepers.task.release(payload));
      return;
    }
    if (status < 400 && payload !== undefined) {
      this.#host.settle(id)?.succeed(payload);
    } else {
      this.#host.settle(id)?.fail(failureOf(endpoint, status, payload), {
        answer: payload,
        isFinal: status < 500 && !WORTH_RETRYING.has(status),
      });
    }
  }

  #failed(id: number, { endpoint }: MountCall, thrown: unknown, ended: AbortSignal): void {
    if (ended.aborted) {
      return;
    }
    const isOurs = thrown instanceof Problem || thrown instanceof BlobMissing;
    if (isOurs || thrown instanceof TypeError) {
      endWith(this.#host.settle(id), thrown);
      return;
    }
    const { code = "", message } = thrown as NodeJS.ErrnoException;
    const said = code.startsWith("HPE_")
      ? `answered what is not HTTP: ${message}`
      : "ended the connection before the end of its answer";
    const failure = {
      ...{ code: "unavailable", reason: "CALL_FAILED" as const },
      message: `the server at ${endpoint} ${said}`,
    };
    this.#broken += 1;
    const alone = this.#broken === 1 && this.size === 1;
    const sinceMs = performance.now() - WORKER_END_NOTICE_MS;
    const told = setTimeout(() => {
      if (this.#host.hasRestartedSince(sinceMs)) {
        this.#host.settle(id)?.lose({ message: "its process ended", alone, outOfMemory: false });
      } else {
        this.#host.settle(id)?.fail(failure);
      }
    }, WORKER_END_NOTICE_MS);
    ended.addEventListener("abort", () => {
      this.#broken -= 1;
      clearTimeout(told);
    });
  }

  async #answer(call: MountCall, signal: AbortSignal): Promise<Answer> {
    for (let isLast = false; ; isLast = true) {
      const sent = request({
        agent: call.agent,
        ...lineOf(call),
        headers: headersOf(call),
        setHost: false,
        signal,
      });
      const answered = responseOf(sent);
      void this.#sendBody(sent, call.arguments);
      let res: IncomingMessage | undefined;
      try {
        res = await answered;
        return await this.#take(sent, res, call.endpoint);
      } catch (err) {
        // A kept connection may end while the request is on its way to it.
        const isStale = sent.reusedSocket && res === undefined && isReset(err);
        if (!isStale || isLast || signal.aborted) {
          throw err;
        }
      } finally {
        if (!sent.writableFinished || res?.complete !== true) {
          sent.destroy();
        }
      }
    }
  }

  async #sendBody(sent: ClientRequest, { files: [file] }: Payload): Promise<void> {
    try {
      if (file !== undefined && "blob" in file) {
        for await (const chunk of this.#options.keepers.task.read(file.blob)) {
          if (sent.destroyed) {
            return;
          }
          if (!sent.write(chunk)) {
            await drained(sent);
          }
        }
      } else if (file !== undefined) {
        sent.write(file.data);
      }
      sent.end();
    } catch (err) {
      sent.destroy(err as Error);
    }
  }

  async #take(sent: ClientRequest, res: IncomingMessage, endpoint: string): Promise<Answer> {
    const { statusCode: status = 0 } = res;
    if (status >= 500) {
      // Servers end a connection on which an application has failed, just after they say so.
      sent.shouldKeepAlive = false;
    }
    const response = headOf(res);
    const fault = faultOfHead(response);
    if (fault !== undefined) {
      throw problem(
        "CALL_FAILED",
        `the answer of the server at ${endpoint} is not valid: ${fault}`,
      );
    }
    const contentType = res.headers["content-type"] || "application/octet-stream";
    const { keepers, maxFileBytes } = this.#options;
    if (status >= 400) {
      const data = await readAtMost(res, MAX_FAILED_ANSWER_BYTES);
      const payload = data && { json: "0", files: [{ contentType, data }], response };
      return { status, payload };
    }
    const file = await keepers.task.keep({ contentType }, bounded(res, maxFileBytes));
    return { status, payload: { json: "0", files: [file], response } };
  }
}

function lineOf({ arguments: { json } }: MountCall): { method: string; path: string } {
  const { method, path } = JSON.parse(json) as MountArguments;
  return { method, path };
}

/** As `rawHeaders` has them. */
function headersOf({ arguments: payload, taskId, attempt, trace }: MountCall): string[] {
  const { method, headers = {} } = JSON.parse(payload.json) as MountArguments;
  const { request: head, files } = payload;
  const [file] = files;
  const url = head && new URL(head.url);
  const said = Object.entries(headers).flat();
  if (file !== undefined) {
    if (headers["content-type"] === undefined) {
      said.push("content-type", file.contentType);
    }
    said.push("content-length", String("blob" in file ? file.blob.size : file.data.byteLength));
  } else if (method !== "GET" && method !== "HEAD") {
    said.push("content-length", "0");
  }
  if (head !== undefined) {
    said.push("x-forwarded-for", head.client, ...head.headers.flat());
  }
  if (trace !== undefined) {
    const [traceparent, tracestate] = traceHeaders(trace);
    said.push("traceparent", traceparent, ...(tracestate === "" ? [] : ["tracestate", tracestate]));
  }
  return [
    ...["host", url?.host ?? "localhost", ...said],
    ...["x-forwarded-proto", url?.protocol.slice(0, -1) ?? "http", "x-request-id", taskId],
    ...["tessera-task-id", taskId, "tessera-attempt", String(attempt)],
  ];
}

function responseOf(sent: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    sent.once("response", resolve);
    // Errors may come after the answer, too, whose reader knows of them.
    sent.on("error", reject);
    sent.once("upgrade", (_res, socket) => {
      socket.destroy();
      reject(problem("CALL_FAILED", "the server opened a WebSocket that nobody asked for"));
    });
  });
}

/** Resolves when more can be written, or nothing any more. */
function drained(sent: ClientRequest): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      sent.off("drain", done);
      sent.off("close", done);
      resolve();
    };
    sent.on("drain", done);
    sent.on("close", done);
  });
}

function headOf({ statusCode = 0, rawHeaders, headers }: IncomingMessage): ResponseHead {
  const named = new Set(headers.connection?.split(",").map((name) => name.trim().toLowerCase()));
  const stored: [name: string, value: string][] = [];
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const [given = "", value = ""] = rawHeaders.slice(index, index + 2);
    const name = given.toLowerCase();
    if (!NOT_STORED.test(name) && !named.has(name)) {
      stored.push([name, value]);
    }
  }
  return { status: statusCode, headers: stored };
}

async function* bounded(res: IncomingMessage, maxBytes: number): AsyncGenerator<Uint8Array, void> {
  let size = Number(res.headers["content-length"] ?? 0);
  const isKnown = size > 0 && res.statusCode !== 304;
  refuseLarge(isKnown ? size : 0, maxBytes);
  size = 0;
  for await (const chunk of res as AsyncIterable<Buffer>) {
    size += chunk.length;
    refuseLarge(size, maxBytes);
    yield chunk;
  }
}

function refuseLarge(bytes: number, maxBytes: number): void {
  if (bytes > maxBytes) {
    const message = `the answer of the server has more than ${maxBytes} bytes: answer with less`;
    throw problem("RESULT_TOO_LARGE", message);
  }
}

function failureOf(endpoint: string, status: number, payload: Payload | undefined): CallFailure {
  const quoted = payload === undefined ? "" : quote(payload);
  return {
    code: CODES[status] ?? (status < 500 ? "invalid_argument" : "internal"),
    reason: "CALL_FAILED",
    message: `the server at ${endpoint} answered with ${status}${quoted === "" ? "" : `: ${quoted}`}`,
    status,
  };
}

/** The beginning of a text. */
function quote({ files: [file], response }: Payload): string {
  const isCoded = response?.headers.some(([name]) => name === "content-encoding") === true;
  const isText = /^text\/(?!html)|[/+]json\b/.test(file?.contentType ?? "");
  if (file === undefined || "blob" in file || isCoded || !isText) {
    return "";
  }
  return Buffer.from(file.data.subarray(0, 4 * MAX_QUOTED_CHARACTERS))
    .toString()
    .slice(0, MAX_QUOTED_CHARACTERS);
}

function isReset(err: unknown): boolean {
  const { code } = err as NodeJS.ErrnoException;
  return code === "ECONNRESET" || code === "EPIPE";
}
