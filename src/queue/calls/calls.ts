/**
 * Synchronous calls of api endpoints: a worker executes the call and the caller
 * waits for the answer. While every slot is busy, calls wait in a bounded FIFO
 * queue, each no longer than the endpoint's timeout.
 */
import { Code } from "@connectrpc/connect";
import { codeFromString } from "@connectrpc/connect/protocol-connect";
import { problem, type Quota, shuttingDown } from "../../errors.ts";
import { type Log, logFailure, logLine } from "../../log/log.ts";
import type { ExecutionEnd } from "../../pool/calls/execution.ts";
import type { MountAgent } from "../../pool/calls/mount-agents.ts";
import type { Piece } from "../../pool/calls/received-chunks.ts";
import type { Pool, Slot } from "../../pool/pool.ts";
import type { ResponseHead } from "../../protocol/heads.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import type { Payload } from "../../protocol/messages.ts";
import type { Units } from "../../protocol/units.ts";
import { payloadBytes } from "../../storage/stored.ts";
import { ownIdOf } from "../../tasks/worker-id.ts";
import { loggedTrace, type Origin } from "../../tracing/context.ts";
import type { DeploymentTracing } from "../../tracing/tracing.ts";
import { UnitNames, UsageMeter } from "../attempts.ts";
import { CallBatches } from "../batches/calls.ts";
import { callEnd } from "../traced.ts";
import { KeyLimits } from "./key-limits.ts";
import { LoneCalls } from "./lone-calls.ts";
import { bytesOf, HeldPieces, PieceQueue } from "./piece-queue.ts";
import { callerGone, forRoom, noMatchingWorker, noWorkerStarts, problemOf } from "./refusals.ts";
import { Reruns } from "./reruns.ts";
import type { CallUse } from "./usage.ts";

/** Calls that may wait for a slot, over all endpoints of a deployment. */
const MAX_WAITING_CALLS = 1_000;

/** How long a call waits for a slot of the worker that it names, before it takes that of any other. */
const NAMED_WORKER_WAIT_MS = 1_000;

interface CallsOptions {
  readonly pool: Pool;
  readonly log: Log;
  readonly newId: () => string;
  /** The units that its functions have reported. Default: those of its own. */
  readonly units?: UnitNames;
  /** Counts what a call used. Default: nothing is counted. */
  readonly onUsed?: ((use: Omit<CallUse, "deploymentId">) => void) | undefined;
  /**
   * How long a call waits while no worker is ready, because one may have to be
   * started first; longer where the endpoint's timeout is. Default: that timeout, as for a slot.
   */
  readonly firstWorkerMs?: number;
  /** Default: nothing is traced. */
  readonly tracing?: DeploymentTracing | undefined;
  /** The node's budget of pieces that wait for their readers. Default: one of its own. */
  readonly heldPieces?: HeldPieces | undefined;
  /** A call has begun to wait for a slot. */
  onWaiting?(): void;
  /** A request to a mounted server has given back its slot, which a task may take. */
  onMountSlot?(): void;
  /** A batch of calls goes to a worker; the oldest has waited this long. */
  onBatch?(endpoint: string, size: number, waitSeconds: number): void;
}

/** What a request to a mounted server brings to a slot: its body takes another way. */
const NOTHING: Payload = { json: "", files: [] };

/** A call that has a slot. */
interface BegunCall {
  readonly endpoint: EndpointManifest;
  readonly payload: Payload;
  readonly signal: AbortSignal;
  readonly taskId: string;
  readonly origin: Origin | undefined;
  readonly slot: Slot;
  readonly onWorker: CalledFrom["onWorker"];
  /** Its place among the calls of its key; undefined where these are not counted. */
  readonly place: Disposable | undefined;
}

/** How a call ended, the last time that it ran. */
interface EndedCall {
  readonly call: BegunCall;
  readonly end: ExecutionEnd;
  /** How often it ran. */
  readonly tries: number;
}

/** How an execution ended; `goesOn`: for its caller, while its function goes on. */
type HeardEnd = ExecutionEnd & { readonly goesOn?: true };

/** Where a call comes from. */
interface CalledFrom {
  /** Aborts the call when its caller has gone. */
  readonly signal: AbortSignal;
  readonly origin?: Origin;
  /** Whose it is among the callers that share the endpoint. Default: nobody's. */
  readonly key?: string | undefined;
  /**
   * The own id of the worker that is to run it, where that has a slot in time; the calls of a batch
   * go to any.
   */
  readonly worker?: string | undefined;
  /** Takes what the key has left of a rate, where the endpoint has one. */
  onQuota?(left: Quota): void;
  /** The call begins in the worker of this own id; again where it runs again. */
  onWorker?(ownId: string): void;
  /** Takes what the function of a stream says of its answer, before the first piece. */
  onResponse?(response: ResponseHead): void;
}

/** Where the pieces of a call go, and what is said of them. */
interface Streaming {
  readonly pieces?: PieceQueue;
  readonly onResponse?: CalledFrom["onResponse"];
}

/** A slot of a mounted server, for one request. */
export interface HeldSlot extends Pick<Slot, "ranIn"> {
  readonly agent: MountAgent;
  /**
   * Gives the slot back; a second call does nothing. With what was passed on, the request counts as a
   * call.
   */
  release(passed?: { readonly bytesIn: number; readonly bytesOut: number }): void;
}

/** How a call waits for a slot. */
interface Waits {
  readonly signal: AbortSignal;
  /** Default: as long as the endpoint allows. */
  readonly withinMs?: number;
  /** The worker whose slot it is to be, at first. Default: any. */
  readonly worker?: string | undefined;
}

interface Waiting {
  readonly endpoint: EndpointManifest;
  /** The worker that it waits for; undefined for any. */
  worker: string | undefined;
  readonly give: (slot: Slot) => void;
  readonly refuse: (err: Error) => void;
}

export class Calls {
  readonly #options: CallsOptions;
  readonly #waiting = new Set<Waiting>();
  readonly #batches: CallBatches;
  readonly #keys = new KeyLimits();
  readonly #lone: LoneCalls;
  readonly #held: HeldPieces;
  readonly #units: UnitNames;
  #closed = false;

  constructor(options: CallsOptions) {
    this.#options = options;
    this.#batches = new CallBatches({
      reserve: (endpoint) => options.pool.reserve(endpoint),
      onFormed: (...formed) => options.onBatch?.(...formed),
    });
    this.#lone = new LoneCalls({ pool: options.pool, othersWait: () => this.anyWait });
    this.#held = options.heldPieces ?? new HeldPieces();
    this.#units = options.units ?? new UnitNames(options.log);
  }

  /**
   * Calls an api endpoint and resolves with its result. Rejects with
   * CALL_FAILED, CALL_TIMEOUT, WORKER_LOST, NO_WORKER, ARGUMENTS_INVALID,
   * OUTPUT_INVALID, RESULT_TOO_LARGE, QUEUE_FULL, KEY_LIMITED, STORAGE_UNAVAILABLE,
   * NO_MATCHING_WORKER or, while the node stops, SHUTTING_DOWN. `signal` aborts the call when its caller has
   * gone.
   */
  async call(endpoint: EndpointManifest, payload: Payload, from: CalledFrom): Promise<Payload> {
    const begun = this.#begin(endpoint, payload, from);
    const call = begun instanceof Promise ? await begun : begun;
    return this.#answer(await this.#run(call));
  }

  /**
   * Calls an api endpoint that streams. It may run again until its first piece. Gives the pieces as the function makes them, no faster
   * than they are read, and throws what `call` rejects with; leaving it aborts the call.
   */
  async *stream(
    endpoint: EndpointManifest,
    payload: Payload,
    from: CalledFrom,
  ): AsyncGenerator<Piece, void, undefined> {
    const call = await this.#begin(endpoint, payload, from);
    const pieces = new PieceQueue(this.#held);
    const { onResponse } = from;
    let ended: EndedCall | undefined;
    void this.#run(call, { pieces, onResponse }).then((last) => {
      ended = last;
      pieces.end(last.end);
    });
    try {
      for (;;) {
        const next = await pieces.next();
        if ("end" in next) {
          const { response } = this.#answer({ tries: 1, call, ...ended, end: next.end });
          if (response) {
            onResponse?.(response);
          }
          return;
        }
        yield next.piece;
      }
    } finally {
      pieces.leave();
    }
  }

  /**
   * A request of this key to a mounted server begins; it ends when the answer is disposed of. Throws
   * KEY_LIMITED.
   */
  enter(endpoint: EndpointManifest, key: string | undefined): Disposable | undefined {
    return this.#keys.enter(endpoint, key);
  }

  /**
   * Takes a slot of a mounted server (`service/mounts.ts`) for one request. Rejects with NO_WORKER,
   * QUEUE_FULL, NO_MATCHING_WORKER or, while the node stops, SHUTTING_DOWN. `signal` aborts the
   * wait when the caller has gone.
   */
  async hold(
    endpoint: EndpointManifest,
    { signal, worker, tokenId }: Pick<CalledFrom, "signal" | "worker"> & Pick<Origin, "tokenId">,
  ): Promise<HeldSlot> {
    const slot =
      this.#reserve(endpoint, worker) ?? (await this.#wait(endpoint, NOTHING, { signal, worker }));
    const { agent } = slot;
    const measure = this.#measure({ slot, endpoint, origin: { tokenId } });
    let isHeld = true;
    const release: HeldSlot["release"] = (passed) => {
      if (isHeld) {
        isHeld = false;
        measure.end(passed && { calls: 1, ...passed });
      }
      slot.release();
      this.slotFree();
      this.#options.onMountSlot?.();
    };
    if (agent === undefined) {
      release();
      throw problem("WORKER_LOST", `the worker of the server at ${endpoint.name} was cut off`, {
        code: Code.Unavailable,
        retryAfterMs: 1_000,
      });
    }
    return { agent, ranIn: slot.ranIn, release };
  }

  /** Whether a worker is ready for calls of an endpoint, or for requests to a server. */
  isServed(endpoint: EndpointManifest): boolean {
    return this.#options.pool.serves(endpoint);
  }

  /** A slot became free or a worker ready: hands slots to the waiting calls, in order. */
  slotFree(): void {
    this.#lone.wake();
    this.#batches.slotFree();
    for (const waiting of this.#waiting) {
      const slot = waiting.endpoint.batch
        ? undefined
        : this.#reserve(waiting.endpoint, waiting.worker);
      if (slot) {
        waiting.give(slot);
      }
    }
  }

  /** The number of calls of an endpoint that wait for a slot. */
  waiting({ name }: EndpointManifest): number {
    let count = 0;
    for (const { endpoint } of this.#waiting) {
      count += endpoint.name === name ? 1 : 0;
    }
    return count;
  }

  get anyWait(): boolean {
    return this.#waiting.size > 0;
  }

  /**
   * Refuses the calls with NO_WORKER that wait for a worker of this node: none can be started,
   * for this reason.
   */
  refuseWaiting(reason: string): void {
    const { pool } = this.#options;
    for (const waiting of [...this.#waiting]) {
      const { endpoint } = waiting;
      if (!pool.serves(endpoint) && pool.awaits?.endpoints.has(endpoint.name) !== true) {
        waiting.refuse(noWorkerStarts(reason));
      }
    }
  }

  /** Refuses the waiting calls and all later ones: no slot will become free. */
  close(): void {
    this.#closed = true;
    this.#lone.close();
    for (const waiting of this.#waiting) {
      waiting.refuse(shuttingDown());
    }
  }

  /** Takes a slot; a promise only if the call has to wait for one. */
  #begin(
    endpoint: EndpointManifest,
    payload: Payload,
    { signal, origin, key, worker, onWorker, onQuota }: CalledFrom,
  ): BegunCall | Promise<BegunCall> {
    const { tracing, newId } = this.#options;
    const place = this.#keys.enter(endpoint, key, onQuota);
    const facts = { endpoint, payload, signal, origin, onWorker, place };
    const begun = (slot: Slot): BegunCall => ({ ...facts, taskId: newId(), slot });
    const free = endpoint.batch ? undefined : this.#reserve(endpoint, worker);
    if (free) {
      return begun(free);
    }
    const fromMs = Date.now();
    return this.#wait(endpoint, payload, { signal, worker }).then(
      (slot) => {
        const call = begun(slot);
        tracing?.waited({ ...tracedFacts(call), fromMs, toMs: Date.now() });
        return call;
      },
      (err: unknown) => {
        place?.[Symbol.dispose]();
        throw err;
      },
    );
  }

  /** Takes a free slot: of this worker, as long as that takes calls of the endpoint. */
  #reserve(endpoint: EndpointManifest, worker: string | undefined): Slot | undefined {
    const { pool } = this.#options;
    const isThere = worker !== undefined && pool.serves(endpoint, worker);
    return pool.reserve(endpoint, isThere ? worker : undefined);
  }

  async #wait(
    endpoint: EndpointManifest,
    payload: Payload,
    { signal, withinMs = Number.POSITIVE_INFINITY, worker }: Waits,
  ): Promise<Slot> {
    if (this.#closed) {
      throw shuttingDown();
    }
    const { pool, firstWorkerMs, onWaiting } = this.#options;
    const isServed = pool.serves(endpoint);
    const awaited = isServed ? undefined : pool.awaits?.endpoints.get(endpoint.name);
    if (awaited !== undefined && !pool.joined.isStarting(endpoint)) {
      throw noMatchingWorker(endpoint, awaited);
    }
    const toStart = firstWorkerMs !== undefined && !isServed;
    if (toStart && awaited === undefined && pool.crashLoop !== undefined) {
      throw noWorkerStarts(pool.crashLoop);
    }
    const waitMs = Math.min(
      withinMs,
      toStart ? Math.max(firstWorkerMs, endpoint.timeoutMs) : endpoint.timeoutMs,
    );
    if (this.#waiting.size >= MAX_WAITING_CALLS) {
      const message = `every worker is busy and ${MAX_WAITING_CALLS} calls are waiting, which is the limit: try again`;
      throw problem("QUEUE_FULL", message, { retryAfterMs: 1_000 });
    }
    return new Promise((resolve, reject) => {
      const leave = (err: Error): void => {
        this.#waiting.delete(waiting);
        this.#batches.remove(waiting);
        clearTimeout(timer);
        clearTimeout(namedTimer);
        reject(err);
      };
      const gone = (): void => leave(callerGone());
      const timer = setTimeout(() => {
        signal.removeEventListener("abort", gone);
        const message = toStart
          ? `no worker was ready within ${waitMs} ms${forRoom(pool)}: try again`
          : `no worker was free for endpoint ${endpoint.name} within its timeout of ${waitMs} ms: try again`;
        leave(problem("NO_WORKER", message, { retryAfterMs: 1_000 }));
      }, waitMs);
      const takeAny = (): void => {
        waiting.worker = undefined;
        this.slotFree();
      };
      const namedTimer = worker && setTimeout(takeAny, NAMED_WORKER_WAIT_MS);
      const waiting: Waiting = {
        ...{ endpoint, worker },
        give: (slot) => {
          this.#waiting.delete(waiting);
          clearTimeout(timer);
          clearTimeout(namedTimer);
          signal.removeEventListener("abort", gone);
          resolve(slot);
        },
        refuse: (err) => {
          signal.removeEventListener("abort", gone);
          leave(err);
        },
      };
      if (signal.aborted) {
        gone();
        return;
      }
      this.#waiting.add(waiting);
      signal.addEventListener("abort", gone, { once: true });
      if (endpoint.batch === undefined || this.#batches.add(waiting, payload, endpoint.batch)) {
        onWaiting?.();
      }
    });
  }

  /** Runs a call, and again in other workers as far as that is allowed (`reruns.ts`). */
  async #run(call: BegunCall, streaming: Streaming = {}): Promise<EndedCall> {
    const reruns = new Reruns(call.endpoint);
    let running = call;
    for (;;) {
      running.onWorker?.(ownIdOf(running.slot.workerId));
      const end = await this.#execute(running, reruns.begin(), streaming);
      const ended = { call: running, end, tries: reruns.tries };
      const isLeft = running.signal.aborted || streaming.pieces?.isUntouched === false;
      const slot =
        reruns.after(end) && !isLeft ? await this.#slotAgain(running, reruns) : undefined;
      if (slot === undefined) {
        if (end.goesOn === undefined) {
          call.place?.[Symbol.dispose]();
        }
        return ended;
      }
      running = { ...running, slot };
    }
  }

  /** Another slot for a call whose worker has ended; undefined if none is free in time. */
  async #slotAgain(
    { endpoint, payload, signal }: BegunCall,
    { alone, leftMs: withinMs }: Reruns,
  ): Promise<Slot | undefined> {
    if (this.#closed) {
      return undefined;
    }
    if (alone) {
      this.#options.onWaiting?.();
      return this.#lone.slot(endpoint, { withinMs, signal });
    }
    const free = endpoint.batch ? undefined : this.#options.pool.reserve(endpoint);
    try {
      return free ?? (await this.#wait(endpoint, payload, { signal, withinMs }));
    } catch {
      // What ended its worker says more than why no other one is free.
      return undefined;
    }
  }

  /**
   * Runs a call, and resolves with its end, or at its timeout: the caller does not wait for a
   * function that goes on after it. The slot, and the place of its key, are taken until the
   * function has ended.
   */
  #execute(
    call: BegunCall,
    { attempt, timeoutMs }: ReturnType<Reruns["begin"]>,
    { pieces, onResponse }: Streaming,
  ): Promise<HeardEnd> {
    const { payload, signal, taskId, origin, slot, place } = call;
    const { log, tracing } = this.#options;
    const span = tracing?.attemptBegan({ ...tracedFacts(call), attempt });
    const trace = (span ?? origin)?.trace;
    const measure = this.#measure(call);
    // Of a call whose function goes on after its timeout, the arguments are given back before its end.
    const bytesIn = attempt === 1 ? payloadBytes(payload) : 0;
    let streamedBytes = 0;
    let goesOn = false;
    return new Promise((resolve) => {
      const gone = (): void => execution.abort("caller_gone");
      const execution = slot.execute(
        { arguments: payload, taskId, attempt, timeoutMs, trace },
        {
          onEnd: (end) => {
            signal.removeEventListener("abort", gone);
            span?.end(callEnd(end));
            measure.end({
              calls: attempt === 1 ? 1 : 0,
              bytesIn,
              bytesOut: pieces || end.kind !== "result" ? streamedBytes : payloadBytes(end.result),
            });
            resolve(end);
            slot.release();
            if (goesOn) {
              place?.[Symbol.dispose]();
            }
            this.slotFree();
          },
          onAbort: (reason) => {
            if (reason === "timeout") {
              goesOn = true;
              resolve({ kind: "aborted", reason, goesOn });
            }
          },
          onLog: (line) => logLine(log, line, logged(call)),
          onUsage: (units) => measure.report(units),
          ...(pieces && {
            onChunk: (piece: Piece) => {
              streamedBytes += bytesOf(piece);
              pieces.push(piece);
            },
          }),
          ...(onResponse && { onResponse }),
        },
      );
      pieces?.begin(execution);
      if (signal.aborted) {
        gone();
      }
      signal.addEventListener("abort", gone, { once: true });
    });
  }

  /** Measures what has a slot from now on. */
  #measure({
    slot,
    endpoint,
    origin,
  }: Pick<BegunCall, "slot" | "endpoint"> & {
    readonly origin: Pick<Origin, "tokenId"> | undefined;
  }) {
    const { onUsed } = this.#options;
    const meter = new UsageMeter(slot, this.#units);
    const beganMs = performance.now();
    return {
      report: (reported: Units) => meter.report(reported),
      /** Undefined: it does not count. */
      end: (used: Pick<CallUse, "calls" | "bytesIn" | "bytesOut"> | undefined) => {
        const { gpuMs, units = {} } = meter.end();
        if (used) {
          const runMs = performance.now() - beganMs;
          const tokenId = origin?.tokenId ?? "";
          onUsed?.({ endpoint: endpoint.name, tokenId, runMs, gpuMs, units, ...used });
        }
      },
    };
  }

  #answer({ end, call, tries }: EndedCall): Payload {
    const { endpoint } = call;
    switch (end.kind) {
      case "result":
        return end.result;
      case "failure": {
        const { code, reason, message, violations, status } = end.failure;
        logFailure(this.#options.log, end.failure, logged(call), "a function failed");
        throw problem(reason, message, {
          code: codeFromString(code) ?? Code.Internal,
          ...(status !== undefined && { status }),
          violations:
            violations?.map(({ path, message }) => ({ field: path, description: message })) ?? [],
        });
      }
      default:
        throw problemOf(end, endpoint, tries);
    }
  }
}

function tracedFacts({ endpoint, taskId, origin }: BegunCall) {
  const parent = origin?.trace;
  return { endpoint: endpoint.name, kind: "api" as const, taskId, attempt: 1, parent };
}

/** The log fields of a call. */
function logged({ endpoint, taskId, origin, slot }: BegunCall): object {
  const reqId = origin && { reqId: origin.requestId };
  return {
    endpoint: endpoint.name,
    taskId,
    ...slot.ranIn,
    ...reqId,
    ...loggedTrace(origin?.trace),
  };
}
