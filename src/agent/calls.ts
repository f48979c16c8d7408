/**
 * The calls of a session. Each is held from its assignment until the node has acknowledged its
 * end: ends are kept and sent again on another stream, because the node may not have stored them.
 * What another node does not go on with is dropped here.
 *
 *   assigned ─> runs ─> ended ─> (its large result is written to the node) ─> told ─> acknowledged
 *
 * Chunks of a streamed result are sent within the window of their call, before its end, and never
 * again: a stream that breaks ends such a call.
 */
import { Code, ConnectError } from "@connectrpc/connect";
import type { Assignment, Assignments } from "../../gen/tessera/v1/worker_pb.js";
import { BatchPost } from "../pool/calls/batch-post.ts";
import type { Execution, ExecutionEnd, ExecutionListener } from "../pool/calls/execution.ts";
import type { Worker } from "../pool/worker.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import type { AbortReason } from "../protocol/messages.ts";
import type { Units } from "../protocol/units.ts";
import type { RemoteFiles } from "./files.ts";
import {
  executeOptions,
  headMessage,
  largeFile,
  type Request,
  type Result,
  resultOf,
} from "./messages.ts";
import type { ReportStream } from "./reports.ts";

/** Ends, chunks or arrivals of one message. */
const MAX_MESSAGE_ENTRIES = 64;
/**
 * The worker waits this long before it tells that calls have arrived: most have ended by then, and
 * their results tell it as well. A node waits for seconds.
 */
const ACCEPT_DELAY_MS = 100;
/** Bytes of one message, about. */
const MAX_MESSAGE_BYTES = 1024 ** 2;

/** A call that the node may still ask for. */
interface Held {
  readonly id: bigint;
  readonly taskId: string;
  readonly attempt: number;
  readonly endpoint: string;
  execution: Execution | undefined;
  chunks: number;
  /** What its function reported. */
  units: Units | undefined;
  end: ExecutionEnd | undefined;
  /** The most memory that its worker held while it ran; undefined: not known. */
  peakMemoryBytes: bigint | undefined;
  /** The end as the node is told it; undefined while its large result is written. */
  result: Result | undefined;
}

type SentChunk = {
  readonly id: bigint;
  readonly sequence: bigint;
  readonly data:
    | { readonly case: "text"; readonly value: string }
    | { readonly case: "bytes"; readonly value: Uint8Array };
  readonly response?: ReturnType<typeof headMessage>;
};

interface HeldCallsOptions {
  readonly files: RemoteFiles;
  readonly reports: ReportStream;
  /** Sends a message on the stream, if there is one. */
  send(request: Request): void;
  /** False when the node may have given the calls to others: then nothing is sent. */
  mayTell(): boolean;
  /** The last call was acknowledged. */
  onIdle(): void;
}

export class HeldCalls {
  readonly #options: HeldCallsOptions;
  readonly #held = new Map<bigint, Held>();
  /** The highest number of a call that was assigned. */
  #highest = 0n;
  #results: Result[] = [];
  #chunks: SentChunk[] = [];
  #flushing = false;
  /** Calls whose arrival was not told. */
  #arrived: bigint[] = [];
  #accepting: NodeJS.Timeout | undefined;

  constructor(options: HeldCallsOptions) {
    this.#options = options;
  }

  /** True when no call is held. */
  get idle(): boolean {
    return this.#held.size === 0;
  }

  /** The calls that are held, and where their numbers are, for the node. */
  list() {
    const held = [...this.#held.values()].map(({ id, taskId, attempt, endpoint, chunks }) => ({
      ...{ id, taskId, attempt, endpoint, chunks: BigInt(chunks) },
    }));
    return { held, lastCall: this.#highest };
  }

  /** Begins calls in a worker; without one, they go back to the queue. */
  begin(
    { calls, together }: Assignments,
    worker: Worker | undefined,
    endpoints: EndpointsByName,
  ): void {
    const fresh = calls.filter(({ id }) => id > this.#highest);
    if (fresh.length === 0) {
      return;
    }
    this.#highest = fresh.reduce((highest, { id }) => (id > highest ? id : highest), 0n);
    this.#arrived.push(...fresh.map(({ id }) => id));
    this.#accepting ??= setTimeout(() => this.#accept(), ACCEPT_DELAY_MS);
    const batch = together ? new BatchPost(fresh.length) : undefined;
    const slot = together && worker ? sharedSlot(worker, endpoints, fresh) : undefined;
    for (const call of fresh) {
      const endpoint = endpoints.get(call.endpoint);
      const held = this.#hold(call);
      if (worker === undefined || endpoint === undefined) {
        this.#ended(held, { kind: "displaced", message: "the worker has no process for it" });
        continue;
      }
      const release = slot ?? ownSlot(worker, endpoint);
      held.execution = worker.execute(
        { ...executeOptions(call, endpoint), ...(batch && { batch }) },
        this.#listener(held, release),
      );
    }
  }

  abort(id: bigint, reason: AbortReason): void {
    this.#held.get(id)?.execution?.abort(reason);
  }

  abortAll(reason: AbortReason): void {
    for (const { execution } of this.#held.values()) {
      execution?.abort(reason);
    }
  }

  /** A streamed result may go on. */
  more(id: bigint, count: number): void {
    this.#held.get(id)?.execution?.more(count);
  }

  /** These ends need not be told again. */
  acknowledged(ids: readonly bigint[]): void {
    for (const id of ids) {
      this.#forget(id);
    }
    this.#lookIdle();
  }

  /**
   * The session goes on with these calls, and all others are dropped. `isMoved`: at another node,
   * which has no results that were written before.
   */
  resume(keep: readonly bigint[], isMoved: boolean): void {
    const kept = new Set(keep);
    this.#chunks = [];
    this.#results = [];
    for (const held of this.#held.values()) {
      if (!kept.has(held.id)) {
        this.#drop(held);
      } else if (held.end !== undefined && (isMoved || held.result === undefined)) {
        this.#tell(held, held.end);
      } else if (held.result) {
        this.#results.push(held.result);
      }
    }
    this.#soon();
    this.#lookIdle();
  }

  /** The stream broke: what streams its result cannot go on, and the node begins it anew. */
  disconnected(): void {
    for (const held of this.#held.values()) {
      if (held.execution?.isStreamed) {
        this.#drop(held);
      }
    }
  }

  /** Drops all calls. */
  clear(): void {
    clearTimeout(this.#accepting);
    for (const held of this.#held.values()) {
      this.#drop(held);
    }
  }

  /** Tells that the calls which run have arrived. */
  #accept(): void {
    this.#accepting = undefined;
    const ids = this.#arrived.filter((id) => this.#held.get(id)?.execution !== undefined);
    this.#arrived = [];
    for (const some of messagesOf(ids, () => 0)) {
      this.#options.send({ message: { case: "accepted", value: { ids: some } } });
    }
  }

  #hold({ id, taskId, attempt, endpoint }: Assignment): Held {
    const held: Held = {
      ...{ id, taskId, attempt, endpoint, chunks: 0, units: undefined },
      execution: undefined,
      end: undefined,
      peakMemoryBytes: undefined,
      result: undefined,
    };
    this.#held.set(id, held);
    return held;
  }

  #listener(held: Held, release: () => void): ExecutionListener {
    const { id } = held;
    const { reports } = this.#options;
    let said: ReturnType<typeof headMessage> | undefined;
    return {
      onEnd: (end) => {
        release();
        this.#ended(held, end);
      },
      onResponse: (response) => {
        said = headMessage(response);
      },
      onChunk: (piece, sequence) => {
        held.chunks = sequence;
        const data =
          typeof piece === "string"
            ? ({ case: "text", value: piece } as const)
            : ({ case: "bytes", value: piece } as const);
        const response = sequence === 1 && said !== undefined ? { response: said } : {};
        this.#chunks.push({ id, sequence: BigInt(sequence), data, ...response });
        this.#soon();
      },
      onProgress: (fraction, message) => reports.progress(id, fraction, message),
      onUsage: (units) => {
        held.units = units;
      },
      onLog: ({ level, message, fieldsJson = "", skipped = 0 }) =>
        reports.line({ id, level, message, fieldsJson, skipped }),
    };
  }

  #ended(held: Held, end: ExecutionEnd): void {
    const peakBytes = held.execution?.peakMemoryBytes;
    held.peakMemoryBytes = peakBytes === undefined ? undefined : BigInt(peakBytes);
    held.execution = undefined;
    held.end = end;
    if (this.#held.get(held.id) === held) {
      this.#tell(held, end);
    } else {
      this.#release(end);
    }
  }

  #tell(held: Held, end: ExecutionEnd): void {
    const file = end.kind === "result" ? largeFile(end.result) : undefined;
    held.result = undefined;
    const { id, units = {} } = held;
    if (file === undefined) {
      this.#ready(held, { ...resultOf(id, end), units });
      return;
    }
    this.#options.files.write(held.id, file).then(
      (blobId) => this.#ready(held, { ...resultOf(id, end, blobId), units }),
      (err) => this.#ready(held, unwritten(held.id, err)),
    );
  }

  #ready(held: Held, result: Result): void {
    if (this.#held.get(held.id) === held) {
      const { peakMemoryBytes } = held;
      held.result = { ...result, ...(peakMemoryBytes !== undefined && { peakMemoryBytes }) };
      this.#results.push(held.result);
      this.#soon();
    }
  }

  /** What happens in one turn of the event loop is sent together. */
  #soon(): void {
    if (!this.#flushing) {
      this.#flushing = true;
      setImmediate(() => {
        this.#flushing = false;
        this.#flush();
      });
    }
  }

  #flush(): void {
    const { send, mayTell, reports } = this.#options;
    if (!mayTell()) {
      return;
    }
    for (const chunks of messagesOf(this.#chunks, ({ data }) => data.value.length)) {
      send({ message: { case: "chunks", value: { chunks } } });
    }
    const results = this.#results;
    this.#chunks = [];
    this.#results = [];
    if (results.length > 0) {
      const afterReport = reports.flush();
      for (const some of messagesOf(results, sizeOf)) {
        send({ message: { case: "results", value: { results: some, afterReport } } });
      }
    }
  }

  #drop(held: Held): void {
    held.execution?.abort("shutdown");
    this.#forget(held.id);
  }

  #forget(id: bigint): void {
    const held = this.#held.get(id);
    this.#held.delete(id);
    if (held?.end) {
      this.#release(held.end);
    }
  }

  #release(end: ExecutionEnd): void {
    if (end.kind === "result") {
      void this.#options.files.keepers.task.release(end.result);
    }
  }

  #lookIdle(): void {
    if (this.idle) {
      this.#options.onIdle();
    }
  }
}

/** The endpoints of the service by name. */
export type EndpointsByName = ReadonlyMap<string, EndpointManifest>;

/** Takes a slot; returns what gives it back. */
function ownSlot(worker: Worker, endpoint: EndpointManifest): () => void {
  worker.capacity.take(endpoint);
  return () => worker.release(endpoint);
}

/** Takes one slot for calls that run together; it is given back with the last of them. */
function sharedSlot(
  worker: Worker,
  endpoints: EndpointsByName,
  calls: readonly Assignment[],
): (() => void) | undefined {
  const endpoint = endpoints.get(calls[0]?.endpoint ?? "");
  const release = endpoint && ownSlot(worker, endpoint);
  let running = calls.length;
  return () => {
    running -= 1;
    if (running === 0) {
      release?.();
    }
  };
}

/** Why a result could not be written to the node. */
function unwritten(id: bigint, err: unknown): Result {
  const { code, rawMessage } = ConnectError.from(err);
  if (code === Code.ResourceExhausted) {
    const failure = { code: "resource_exhausted", reason: "RESULT_TOO_LARGE", message: rawMessage };
    return { id, end: { case: "failure", value: failure } };
  }
  const message = `its result could not be stored: ${rawMessage}`;
  return { id, end: { case: "displaced", value: message } };
}

function sizeOf({ end }: Result): number {
  switch (end?.case) {
    case "json":
      return end.value.length;
    case "file":
      return end.value.content?.case === "data" ? end.value.content.value.length : 0;
    case "failure":
      return (end.value.message?.length ?? 0) + (end.value.stack?.length ?? 0);
    default:
      return 0;
  }
}

/** Splits a list into messages. */
function* messagesOf<One>(all: readonly One[], size: (one: One) => number): Generator<One[]> {
  let message: One[] = [];
  let bytes = 0;
  for (const one of all) {
    const more = size(one);
    if (message.length === MAX_MESSAGE_ENTRIES || (bytes > 0 && bytes + more > MAX_MESSAGE_BYTES)) {
      yield message;
      message = [];
      bytes = 0;
    }
    message.push(one);
    bytes += more;
  }
  if (message.length > 0) {
    yield message;
  }
}
