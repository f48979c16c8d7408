/**
 * The agent: runs workers of a deployment on this machine for a platform on another. Each worker
 * has a session of its own. One that ends registers anew, until the agent is asked to end or the
 * platform refuses it.
 *
 * Where another revision takes over, calls of the one before may go on for minutes: the worker
 * registers anew at once, and its session of before ends beside the new one, with a process of its
 * own. There is one such session of a worker at a time.
 */
import { hostname } from "node:os";
import type { RegisterResponse } from "../../gen/tessera/v1/worker_pb.js";
import { formatDuration } from "../protocol/duration.ts";
import type { FileKeeper } from "../storage/files/keeper.ts";
import { LogThrottle } from "../time/log-throttle.ts";
import { durationFromMs } from "../time/messages.ts";
import { connect, faultOf, type PlatformConnection, refusalOf } from "./connection.ts";
import type { AgentMachine } from "./service.ts";
import { AgentSession, type Registration, type Resumption, reconnectBackoff } from "./session.ts";
import type { SessionNotes } from "./session-notes.ts";
import { MachineEnd } from "./until.ts";

/** The version of WorkerService that an agent speaks. */
const PROTOCOL = 1;
/** How long an answer to Register may take. */
const REGISTER_TIMEOUT_MS = 5_000;

const NEW: Resumption = { resumeSession: "", held: [], lastCall: 0n };

interface AgentOptions {
  /** Of the platform. */
  readonly url: string;
  readonly token: string;
  readonly deployment: string;
  readonly labels: { readonly [name: string]: string };
  /** How many. */
  readonly workers: number;
  readonly machine: AgentMachine;
  /** How long calls go on while the platform is not reached. Default: as the platform says. */
  readonly silenceLimitMs?: number | undefined;
  /** When the machine ends, by `Date.now`. Default: it stays. */
  readonly untilMs?: number | undefined;
  readonly notes: Pick<SessionNotes, "open" | "left" | "forget">;
  /** Keeps results on this machine until they are acknowledged. */
  readonly local: FileKeeper;
  readonly version: string;
  /** Such as `linux-x64`. */
  readonly platform: string;
  /** The versions of Python that were named. */
  readonly pythons: readonly string[];
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  onJoined(registered: RegisterResponse): void;
}

/** The platform will not have the workers of this agent. */
class AgentRefused extends Error {
  override readonly name = "AgentRefused";
}

/**
 * Runs the workers until `leave` aborts and the last call has ended. Rejects with an
 * `AgentRefused` when the platform refuses them; then none is left running.
 */
export async function runAgent(options: AgentOptions, leave: AbortSignal): Promise<void> {
  const refused = new AbortController();
  const signal = AbortSignal.any([leave, refused.signal]);
  const left = [...options.notes.left()];
  const workers = Array.from({ length: options.workers }, () =>
    new AgentWorker(options, { leave: signal, left }).run().catch((err) => {
      refused.abort(err);
      throw err;
    }),
  );
  const ends = await Promise.allSettled(workers);
  const failed = ends.find((end) => end.status === "rejected");
  if (failed) {
    throw failed.reason;
  }
}

class AgentWorker {
  readonly #options: AgentOptions;
  readonly #leave: AbortSignal;
  readonly #backoff = reconnectBackoff();
  readonly #waiting: LogThrottle;
  /** Sessions of agents that were killed, with the paths of their notes; all workers share them. */
  readonly #left: [string, string][];
  #isKnown = false;
  #hasServed = false;

  constructor(
    options: AgentOptions,
    { leave, left }: { readonly leave: AbortSignal; readonly left: [string, string][] },
  ) {
    this.#options = options;
    this.#left = left;
    this.#leave = leave;
    this.#waiting = new LogThrottle((fields, message) => options.machine.log.warn(fields, message));
  }

  async run(): Promise<void> {
    /** The session of before, whose calls go on. */
    let lingering: Promise<unknown> | undefined;
    try {
      for (;;) {
        const first = await this.#join();
        if (first === undefined) {
          return;
        }
        const { ended, lingers } = this.#begin(first);
        const end = await Promise.race([ended, lingers]);
        if (end === undefined) {
          await lingering;
          lingering = ended;
        } else if (end.kind === "left") {
          return;
        } else if (end.kind === "refused") {
          throw new AgentRefused(faultOf(end.error), { cause: end.error });
        }
        const { workerId: worker } = first.registered;
        const reason = end?.reason ?? "there is another revision, and calls of this one go on";
        this.#options.machine.log.info({ worker, reason }, "the worker registers anew");
        await this.#backoff.pause(this.#leave);
      }
    } finally {
      await lingering;
    }
  }

  /** Begins a session; `lingers` resolves when another one may begin beside it. */
  #begin(first: Registration) {
    const { machine, local, notes, now, deployment, untilMs, onJoined } = this.#options;
    const ending = new MachineEnd(first.registered, { untilMs, leave: this.#leave });
    if (ending.signal.aborted && !this.#leave.aborted && !this.#hasServed) {
      first.connection[Symbol.dispose]();
      throw new AgentRefused(
        `calls of ${deployment} may last longer than this machine: their longest timeout is ${formatDuration(ending.longestMs)}, and it ends at ${new Date(untilMs ?? 0).toISOString()}; let it end later, or give the endpoints a shorter timeout`,
      );
    }
    this.#hasServed = true;
    onJoined(first.registered);
    const { workerId: worker, revision } = first.registered;
    machine.log.info({ worker, revision }, "the worker has joined");
    const lingers = Promise.withResolvers<undefined>();
    const session = new AgentSession({
      ...{ machine, local, first, now, leave: ending.signal, note: notes.open() },
      endsAtMs: untilMs,
      register: (resumption) => this.#register(resumption),
      onLingering: () => lingers.resolve(undefined),
    });
    const ended = session.run().finally(() => ending[Symbol.dispose]());
    return { ended, lingers: lingers.promise };
  }

  /** Registers, again and again; undefined when the agent ends before that works. */
  async #join(): Promise<Registration | undefined> {
    const left = this.#left.pop();
    while (!this.#leave.aborted) {
      try {
        const registration = await this.#register(
          left ? { ...NEW, resumeSession: left[1], restarted: true } : NEW,
        );
        if (left) {
          await this.#options.notes.forget(left[0]);
        }
        this.#isKnown = true;
        this.#backoff.reset();
        return registration;
      } catch (err) {
        if (refusalOf(err, this.#isKnown) === "refused") {
          throw new AgentRefused(faultOf(err), { cause: err });
        }
        this.#waiting.say({ reason: faultOf(err) }, "the worker cannot join yet, and tries again");
        await this.#backoff.pause(this.#leave);
      }
    }
    return undefined;
  }

  /** Registers over a connection of its own. */
  async #register(resumption: Resumption): Promise<Registration> {
    const { url, token, deployment, labels, version, platform, pythons, now } = this.#options;
    const { silenceLimitMs, machine } = this.#options;
    const connection: PlatformConnection = connect({ url, token });
    const sentAtMs = now();
    try {
      const registered = await connection.client.register(
        {
          gpus: machine.gpus.use.map(({ gpu }) => ({
            name: gpu.name,
            memoryBytes: BigInt(gpu.memoryBytes),
            slice: gpu.slice !== undefined,
          })),
          ...{ deployment, labels: { ...labels }, protocolMin: PROTOCOL, protocolMax: PROTOCOL },
          features: ["batch", "stream", "mounts"],
          runtime: {
            ...{ language: "agent", version, platform, pythons: [...pythons] },
            ...{ hostname: hostname(), pid: process.pid },
          },
          resumeSession: resumption.resumeSession,
          held: [...resumption.held],
          lastCall: resumption.lastCall,
          restarted: resumption.restarted === true,
          ...(silenceLimitMs !== undefined && { silenceLimit: durationFromMs(silenceLimitMs) }),
        },
        { timeoutMs: REGISTER_TIMEOUT_MS },
      );
      return { connection, registered, sentAtMs };
    } catch (err) {
      connection[Symbol.dispose]();
      throw err;
    }
  }
}
