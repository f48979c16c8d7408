/**
 * The session of one worker with its platform: a Work stream that may break and go on over
 * another connection, also with another node, while the calls run.
 *
 *   connected     calls arrive, ends are told
 *   disconnected  calls go on; it registers again with its session, until the fence is over
 *   leaving       it takes no more calls, and ends when the last end is acknowledged
 *   ended         by the node, by the fence, or in good order: what still runs is killed first
 */
import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Drain, RegisterResponse, WorkResponse } from "../../gen/tessera/v1/worker_pb.js";
import { MachineMeter } from "../pool/machine-load.ts";
import { tunnelsFor } from "../pool/remote/mounts.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { FileKeeper } from "../storage/files/keeper.ts";
import { MAX_TIMER_MS } from "../time/alarm.ts";
import { Backoff } from "../time/backoff.ts";
import { LogThrottle } from "../time/log-throttle.ts";
import { type EndpointsByName, HeldCalls } from "./calls.ts";
import { faultOf, type PlatformConnection, refusalOf } from "./connection.ts";
import { Fence } from "./fence.ts";
import { RemoteFiles, type SessionAccess } from "./files.ts";
import { abortReason, type Request } from "./messages.ts";
import { ReportStream } from "./reports.ts";
import { type AgentMachine, JoinedService } from "./service.ts";
import type { SessionNote } from "./session-notes.ts";
import { Tunnels } from "./tunnels.ts";
import { END_MARGIN_MS } from "./until.ts";
import { WorkStream } from "./work-stream.ts";

/** The longest first pause before a worker tries to reach its platform again. */
const FIRST_RECONNECT_PAUSE_MS = 100;
/** The longest pause before a worker tries to reach its platform again. */
const MAX_RECONNECT_PAUSE_MS = 2_000;
/** With jitter, so that workers of a node that restarts do not come together. */
export const reconnectBackoff = (): Backoff =>
  new Backoff(FIRST_RECONNECT_PAUSE_MS, MAX_RECONNECT_PAUSE_MS, Math.random);
/** How long a worker that leaves waits for its node to end the session, when no call is left. */
const LEAVE_TIMEOUT_MS = 3_000;

/** A registration, and when it was sent by the monotonic clock. */
export interface Registration {
  readonly connection: PlatformConnection;
  readonly registered: RegisterResponse;
  readonly sentAtMs: number;
}

/** What a session goes on with. */
export interface Resumption extends ReturnType<HeldCalls["list"]> {
  readonly resumeSession: string;
  /** True for the session of an agent that was killed. */
  readonly restarted?: boolean;
}

interface AgentSessionOptions {
  readonly machine: AgentMachine;
  /** Keeps results on this machine. */
  readonly local: FileKeeper;
  readonly first: Registration;
  /** Where the session is noted while it lasts. */
  readonly note: Pick<SessionNote, "write" | "remove">;
  /** Registers again. Rejects with the error of the call. */
  register(resumption: Resumption): Promise<Registration>;
  /**
   * It takes no more calls, for there is another revision, and those that it has may go on for long:
   * another session may begin beside it.
   */
  onLingering(): void;
  /** Aborts when the worker is to leave. */
  readonly leave: AbortSignal;
  /** When the machine ends, by `Date.now`. Undefined: it stays. */
  readonly endsAtMs: number | undefined;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
}

type AgentSessionEnd =
  /** The worker registers anew. */
  | { readonly kind: "again"; readonly reason: string }
  /** It was asked to leave, and has. */
  | { readonly kind: "left" }
  /** The platform does not have it any more. */
  | { readonly kind: "refused"; readonly error: unknown };

export class AgentSession {
  readonly #options: AgentSessionOptions;
  readonly #ended = new AbortController();
  readonly #over = Promise.withResolvers<AgentSessionEnd>();
  readonly #fence: Fence;
  readonly #reports = new ReportStream();
  readonly #calls: HeldCalls;
  readonly #service: JoinedService;
  readonly #tunnels: Tunnels;
  readonly #backoff = reconnectBackoff();
  readonly #load = new MachineMeter();
  readonly #unreachable: LogThrottle;
  #current: Registration;
  #stream: WorkStream | undefined;
  /** What the session goes on with, until its stream is open. */
  #resumed: { readonly keep: readonly bigint[]; readonly isMoved: boolean } | undefined;
  #leaving: AgentSessionEnd | undefined;
  readonly #timers: NodeJS.Timeout[] = [];

  constructor(options: AgentSessionOptions) {
    const { machine, local, first, now } = options;
    this.#options = options;
    this.#current = first;
    const source = { access: () => this.#access, signal: this.#ended.signal };
    const files = new RemoteFiles({ ...source, local });
    this.#fence = new Fence({
      silenceMs: silenceOf(first.registered),
      now,
      sinceMs: first.sentAtMs,
      onAbort: () => {
        this.#calls.abortAll("shutdown");
        this.#tunnels.endAll();
      },
      onOver: () => this.#cutOff(),
    });
    this.#calls = new HeldCalls({
      files,
      reports: this.#reports,
      send: (request) => this.#send(request),
      mayTell: () => !this.#fence.isOver,
      onIdle: () => this.#lookLeft(),
    });
    this.#service = new JoinedService({
      ...{ machine, registered: first.registered, source, files, reports: this.#reports },
      onChange: () => this.#offer(),
    });
    this.#tunnels = new Tunnels({
      access: () => this.#access,
      service: () => this.#service,
      onIdle: () => this.#lookLeft(),
    });
    this.#unreachable = new LogThrottle((fields, message) => machine.log.warn(fields, message));
  }

  /** Works until the session ends. Never rejects. */
  async run(): Promise<AgentSessionEnd> {
    const { leave } = this.#options;
    const onLeave = (): void => this.#leave({ kind: "left" }, "it was asked to end");
    leave.addEventListener("abort", onLeave);
    if (leave.aborted) {
      onLeave();
    }
    await this.#options.note.write(this.#current.registered.session);
    void this.#service.start();
    try {
      for (;;) {
        const end =
          (await Promise.race([this.#serve(), this.#over.promise])) ??
          (await Promise.race([this.#resume(), this.#over.promise]));
        if (end) {
          return end;
        }
      }
    } finally {
      leave.removeEventListener("abort", onLeave);
      await this.#close();
      await this.#options.note.remove();
    }
  }

  get #access(): SessionAccess {
    const { connection, registered } = this.#current;
    return { client: connection.client, session: registered.session };
  }

  /** Works over one stream. Resolves with undefined when it broke. */
  async #serve(): Promise<AgentSessionEnd | undefined> {
    const { registered } = this.#current;
    const stream = new WorkStream({
      ...this.#access,
      heartbeatMs: heartbeatOf(registered),
      now: this.#options.now,
      usage: () => this.#service.process?.usage() ?? { cpuMs: 0, memoryBytes: 0 },
      load: () => this.#load.look(),
      onWelcome: () => this.#backoff.reset(),
      onMessage: (response) => this.#take(response),
      onAnswer: (sentAtMs) => this.#fence.acknowledged(sentAtMs),
    });
    this.#stream = stream;
    const running = stream.run();
    this.#reports.connect(this.#access, this.#ended.signal);
    if (this.#resumed) {
      this.#calls.resume(this.#resumed.keep, this.#resumed.isMoved);
      this.#resumed = undefined;
    }
    this.#offer();
    try {
      await running;
      return this.#leaving && this.#isIdle ? this.#leaving : undefined;
    } catch (err) {
      return this.#endOf(err);
    } finally {
      this.#stream = undefined;
      this.#calls.disconnected();
      this.#tunnels.endAll();
      this.#reports.disconnect();
    }
  }

  /** Registers again until that works, or the session is over. */
  async #resume(): Promise<AgentSessionEnd | undefined> {
    const { machine, register } = this.#options;
    while (!this.#ended.signal.aborted) {
      if (this.#leaving && this.#isIdle) {
        return this.#leaving;
      }
      await this.#backoff.pause(this.#ended.signal);
      try {
        this.#current.connection[Symbol.dispose]();
        const next = await register({
          resumeSession: this.#current.registered.session,
          ...this.#calls.list(),
        });
        await this.#options.note.write(next.registered.session);
        this.#goOn(next);
        machine.log.info({ worker: next.registered.workerId }, "the worker is connected again");
        return undefined;
      } catch (err) {
        const end = this.#endOf(err);
        if (end) {
          return end;
        }
        this.#unreachable.say({ reason: faultOf(err) }, "the worker is cut off, and tries again");
      }
    }
    return await this.#over.promise;
  }

  #goOn(next: Registration): void {
    const before = this.#current.registered;
    const { workerId, keep, revision } = next.registered;
    this.#fence.limit(silenceOf(next.registered));
    this.#fence.acknowledged(next.sentAtMs);
    this.#current = next;
    this.#resumed = { keep, isMoved: workerId !== before.workerId };
    if (revision !== before.revision) {
      const reason = `the deployment has revision ${revision}`;
      this.#leave({ kind: "again", reason }, reason);
    }
  }

  /** The end of the session that an error means; undefined when it goes on. */
  #endOf(err: unknown): AgentSessionEnd | undefined {
    if (this.#ended.signal.aborted) {
      return undefined;
    }
    const refusal = refusalOf(err, true);
    if (this.#leaving && (this.#isIdle || refusal !== "passing")) {
      return this.#leaving;
    }
    switch (refusal) {
      case "refused":
        return { kind: "refused", error: err };
      case "expired":
        return { kind: "again", reason: faultOf(err) };
      case "passing":
        return undefined;
    }
  }

  #take({ message }: WorkResponse): void {
    switch (message.case) {
      case "assignments":
        // A process that was frozen must not begin what others have by now.
        if (!this.#fence.isOver) {
          const worker = this.#fence.isOpen ? this.#service.worker : undefined;
          this.#calls.begin(message.value, worker, this.#endpoints);
        }
        break;
      case "abort":
        this.#calls.abort(message.value.id, abortReason(message.value.reason));
        break;
      case "more":
        this.#calls.more(message.value.id, message.value.count);
        break;
      case "resultsAck":
        this.#calls.acknowledged(message.value.ids);
        break;
      case "drain":
        this.#drain(message.value);
        break;
      case "connect":
        if (this.#fence.isOpen) {
          this.#tunnels.open(message.value);
        }
        break;
      case "disconnect":
        this.#tunnels.end(message.value.id);
        break;
      case "retire":
        this.#service.process?.retire();
        break;
      default:
    }
  }

  /** True when no call and no connection to a mounted server is left. */
  get #isIdle(): boolean {
    return this.#calls.idle && this.#tunnels.size === 0;
  }

  get #endpoints(): EndpointsByName {
    return new Map(this.#service.manifest?.endpoints.map((each) => [each.name, each]));
  }

  #send(request: Request): void {
    this.#stream?.send(request);
  }

  /** Says how many calls of each endpoint run at a time: none without a process that takes them. */
  #offer(): void {
    const { worker } = this.#service;
    const takes = worker && !worker.isDraining && !worker.isBlocked && !this.#leaving;
    const manifest = takes ? this.#service.manifest : undefined;
    const slots = manifest ? slotsOf(manifest) : {};
    const { fault = "" } = this.#service;
    this.#send({ message: { case: "offer", value: { slots, fault } } });
    if (this.#leaving) {
      this.#send({ message: { case: "draining", value: { reason: "it leaves" } } });
    }
  }

  #drain({ registerAgain, reason, within }: Drain): void {
    this.#leave(registerAgain ? { kind: "again", reason } : { kind: "left" }, reason);
    if (within) {
      this.#timers.push(setTimeout(() => this.#calls.abortAll("shutdown"), durationMs(within)));
    }
  }

  #leave(end: AgentSessionEnd, reason: string): void {
    this.#options.machine.log.info({ reason }, "the worker takes no more calls");
    // Who is asked to end does not register again.
    this.#leaving = this.#leaving?.kind === "left" ? this.#leaving : end;
    this.#endInTime();
    this.#offer();
    this.#lookLeft();
    // GPUs are free for another one when this one has ended.
    if (this.#leaving.kind === "again" && !this.#isIdle && !this.#service.hasGpus) {
      this.#options.onLingering();
    }
  }

  /** What has no timeout, such as a WebSocket, ends before the machine does. */
  #endInTime(): void {
    const { endsAtMs } = this.#options;
    const leftMs = endsAtMs === undefined ? undefined : endsAtMs - END_MARGIN_MS / 2 - Date.now();
    if (leftMs !== undefined && leftMs <= MAX_TIMER_MS) {
      const end = (): void => {
        this.#calls.abortAll("shutdown");
        this.#tunnels.endAll();
      };
      this.#timers.push(setTimeout(end, Math.max(0, leftMs)));
    }
  }

  /** When all is done the node ends the session; a node that does not is left. */
  #lookLeft(): void {
    if (this.#leaving && this.#isIdle) {
      const leave = (): void => {
        if (this.#leaving && this.#isIdle) {
          this.#over.resolve(this.#leaving);
        }
      };
      this.#timers.push(setTimeout(leave, LEAVE_TIMEOUT_MS));
    }
  }

  #cutOff(): void {
    const reason = "the platform was not reached in time, and gives its calls to others";
    this.#options.machine.log.warn({ calls: this.#calls.list().held.length }, reason);
    void this.#service.kill(reason);
    this.#over.resolve(this.#leaving ?? { kind: "again", reason });
  }

  async #close(): Promise<void> {
    for (const timer of this.#timers) {
      clearTimeout(timer);
    }
    this.#fence[Symbol.dispose]();
    this.#ended.abort(new Error("the session is over"));
    this.#tunnels.endAll();
    if (this.#leaving && this.#calls.idle && !this.#fence.isOver) {
      await this.#service.stop();
    }
    this.#calls.clear();
    await this.#service.kill("its session is over");
    this.#stream?.break("the session is over");
    this.#reports[Symbol.dispose]();
    this.#current.connection[Symbol.dispose]();
  }
}

/** How many calls of each endpoint, and requests of each mounted server, run at a time. */
function slotsOf({ endpoints, mounts = [] }: ServiceManifest): Record<string, number> {
  const tunnels = tunnelsFor(mounts);
  return Object.fromEntries([
    ...endpoints.map(({ name, concurrency }) => [name, concurrency]),
    ...mounts.map(({ path, concurrency }) => [path, Math.min(concurrency, tunnels)]),
  ]);
}

function silenceOf({ silenceLimit }: RegisterResponse): number {
  return silenceLimit ? durationMs(silenceLimit) : 15_000;
}

function heartbeatOf({ heartbeatInterval }: RegisterResponse): number {
  return heartbeatInterval ? durationMs(heartbeatInterval) : 5_000;
}
