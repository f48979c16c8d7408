/**
 * Work: one stream to a worker. What comes is read no faster than a rate, and a message that
 * breaks the protocol ends the session of its worker, and nothing else.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { MachineLoad as MachineLoadMessage } from "../../../gen/tessera/v1/machine_pb.js";
import type {
  WorkerService,
  WorkRequest,
  WorkResponseSchema,
} from "../../../gen/tessera/v1/worker_pb.js";
import { perSecond, TokenBucket } from "../../collections/token-bucket.ts";
import { problem } from "../../errors.ts";
import type { RemoteStream } from "../../pool/remote/messages.ts";
import type { MachineLoad } from "../../storage/hosting/nodes.ts";
import { workerToken } from "./caller.ts";
import { remoteChunk, remoteResults, toResponse } from "./messages.ts";
import { sessionExpired, type WorkerSession, type WorkerSessions } from "./remote-sessions.ts";

/** Messages that a worker has not read yet. An honest one has a few for each of its slots. */
const MAX_UNREAD_MESSAGES = 20_000;

/** Messages taken from a worker; one with many results counts once. */
const WORKER_MESSAGES_PER_SECOND = 10_000;
/** Steps in which the load of a machine is told. */
const MAX_LOAD_STEPS = 100;

/** Pause of the reader of a worker that sends more. */
const THROTTLE_PAUSE_MS = 10;

type Response = MessageInitShape<typeof WorkResponseSchema>;

export function work(sessions: WorkerSessions): ServiceImpl<typeof WorkerService>["work"] {
  return async function* (requests, ctx) {
    const principal = workerToken(ctx.values);
    const messages = requests[Symbol.asyncIterator]();
    const { value: first } = await messages.next();
    if (first?.message.case !== "hello") {
      throw problem("REQUEST_INVALID", "the first message of Work has to be hello");
    }
    const session = sessions.get(first.message.value.session, principal);
    const { worker } = session;
    const queue = new SendQueue<Response>();
    const stream: RemoteStream = {
      send: (message) => queue.send(toResponse(message)),
      end: (reason) => queue.end(endOf(session, reason)),
    };
    queue.send({ message: { case: "welcome", value: {} } });
    worker.connect(stream);
    void read({ [Symbol.asyncIterator]: () => messages }, session, stream).then(
      () => queue.end(),
      (err) => queue.end(err),
    );
    const stop = (): void => queue.end();
    ctx.signal.addEventListener("abort", stop);
    try {
      yield* queue;
    } finally {
      ctx.signal.removeEventListener("abort", stop);
      worker.disconnect(stream);
    }
  };
}

/** Why the node ends a stream: the session is over, goes on over another stream, or the node ends. */
function endOf({ worker }: WorkerSession, reason: string) {
  if (worker.isParted) {
    return problem("SHUTTING_DOWN", "the node ends: register again", { retryAfterMs: 1_000 });
  }
  return worker.ended ? sessionExpired(reason) : problem("WORKER_REPLACED", reason);
}

async function read(
  messages: AsyncIterable<WorkRequest>,
  session: WorkerSession,
  stream: RemoteStream,
): Promise<void> {
  const rate = new TokenBucket(perSecond(WORKER_MESSAGES_PER_SECOND));
  for await (const request of messages) {
    while (!rate.take()) {
      await sleep(THROTTLE_PAUSE_MS);
    }
    session.worker.heard();
    const fault = take(request, session, stream);
    if (fault !== undefined) {
      session.worker.kill(fault);
      throw problem("REQUEST_INVALID", `the worker broke the protocol: ${fault}`);
    }
  }
}

/** Takes a message. Returns what is wrong with a forged one. */
function take(
  { message }: WorkRequest,
  { worker, reports }: WorkerSession,
  stream: RemoteStream,
): string | undefined {
  switch (message.case) {
    case "offer":
      worker.offers(new Map(Object.entries(message.value.slots)), message.value.fault || undefined);
      return undefined;
    case "accepted":
      worker.accepted(message.value.ids.map(Number));
      return undefined;
    case "results": {
      const results = remoteResults(message.value);
      if (results === undefined) {
        return "it sent a result that the protocol does not have";
      }
      reports.finish(results, Number(message.value.afterReport));
      return undefined;
    }
    case "chunks":
      for (const sent of message.value.chunks) {
        const chunk = remoteChunk(sent);
        const fault = chunk ? worker.chunk(chunk) : "it sent a chunk without content";
        if (fault !== undefined) {
          return fault;
        }
      }
      return undefined;
    case "heartbeat": {
      const { sequence, memoryBytes, cpuTime, load } = message.value;
      const cpuMs = cpuTime ? durationMs(cpuTime) : 0;
      worker.measured({ cpuMs, memoryBytes: Number(memoryBytes) }, load && loadOf(load));
      stream.send({ type: "heartbeat", sequence: Number(sequence) });
      return undefined;
    }
    case "draining":
      worker.drains();
      return undefined;
    default:
      return message.case === "hello" ? "it said hello twice" : undefined;
  }
}

/** Of a machine, in the steps in which it is told: what others read is not written anew with each heartbeat. */
function loadOf(load: MachineLoadMessage): MachineLoad {
  const { processors, busyProcessors } = load;
  const step = Math.max(0.1, processors / MAX_LOAD_STEPS);
  const memoryBytes = Number(load.memoryBytes);
  const stepBytes = Math.max(1, memoryBytes / MAX_LOAD_STEPS);
  return {
    processors,
    busyProcessors: Number((Math.round(busyProcessors / step) * step).toFixed(2)),
    memoryBytes,
    usedMemoryBytes: Math.round(Math.round(Number(load.usedMemoryBytes) / stepBytes) * stepBytes),
  };
}

/** A queue of messages for one reader, who takes them as an iterable. */
export class SendQueue<Message> implements AsyncIterable<Message> {
  #messages: Message[] = [];
  #wake: (() => void) | undefined;
  #end: { readonly error: unknown } | undefined;

  send(message: Message): void {
    if (this.#end === undefined) {
      this.#messages.push(message);
      if (this.#messages.length > MAX_UNREAD_MESSAGES) {
        this.#messages = [];
        this.end(new Error("the reader does not read"));
      }
      this.#wake?.();
    }
  }

  /** Nothing more comes. The reader gets what is there, then the error, if there is one. */
  end(error?: unknown): void {
    this.#end ??= { error };
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message, void, undefined> {
    for (;;) {
      yield* this.#messages.splice(0);
      if (this.#messages.length > 0) {
        continue;
      }
      if (this.#end !== undefined) {
        if (this.#end.error !== undefined) {
          throw this.#end.error;
        }
        return;
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
      this.#wake = undefined;
    }
  }
}
