/**
 * The launcher: follows how many workers the deployments of its token want, and keeps that many
 * machines running for each (`fleet.ts`), by a cluster of one kind (`machines.ts`).
 *
 * A deployment is its own while it says so, every ten seconds; the platform gives tokens for
 * machines to nobody else. Where another launcher has it, this one waits to take over. While the
 * platform is not reached nothing is started or stopped: who cannot see does not move.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { LauncherService, type WorkersWanted } from "../../../gen/tessera/v1/launcher_pb.js";
import { errorFacts } from "../../client/error.ts";
import type { Log } from "../../log/log.ts";
import { Backoff } from "../../time/backoff.ts";
import { LogThrottle } from "../../time/log-throttle.ts";
import { durationFromMs } from "../../time/messages.ts";
import { Fleet, type MachineKind } from "./fleet.ts";
import type { ClusterMachine, MachineOrder, Machines } from "./machines.ts";

/** How often the cluster is asked for its machines, and the platform hears of them. */
const ROUND_INTERVAL_MS = 10_000;
/** Least time between two rounds: what is wanted may change many times a second. */
const ROUND_MIN_INTERVAL_MS = 1_000;
/** How long an answer of the platform may take. */
const CALL_TIMEOUT_MS = 10_000;
/** The longest pause before the platform is tried again. */
const MAX_RECONNECT_PAUSE_MS = 5_000;

export interface LauncherOptions extends MachineKind {
  /** Of the platform. */
  readonly url: string;
  readonly token: string;
  /** What machines are started on, for people. */
  readonly on: string;
  readonly hostname: string;
  readonly machines: Machines;
  readonly log: Log;
  readonly now: () => number;
  newId(): string;
  /** The deployments are known. */
  onStarted(deployments: readonly string[]): void;
  /** Default: ten seconds. */
  readonly intervalMs?: number;
  /** Default: see `Fleet`. */
  readonly settleMs?: number;
}

/** The platform will not have this launcher. */
class LauncherRefused extends Error {
  override readonly name = "LauncherRefused";
}

/** What is left running when a launcher ends. */
export interface LeftRunning {
  readonly machines: number;
}

/**
 * Launches until `leave` aborts; machines go on then, until another launcher finds them or their
 * time is over. Rejects with a `LauncherRefused` when the platform refuses its token.
 */
export async function runLauncher(
  options: LauncherOptions,
  leave: AbortSignal,
): Promise<LeftRunning> {
  using launcher = new Launcher(options, leave);
  return await launcher.run();
}

class Launcher implements Disposable {
  readonly #options: LauncherOptions;
  readonly #connection: ReturnType<typeof connect>;
  /** A launcher that starts again is another one: what it holds is free when it ends in good order. */
  readonly #launcher: string;
  readonly #over: AbortController;
  readonly #signal: AbortSignal;
  readonly #fleets = new Map<string, Fleet>();
  readonly #unreachable: LogThrottle;
  /** Deployments that another launcher has, by name. */
  readonly #waitedFor = new Set<string>();
  #wake = Promise.withResolvers<void>();
  #hasStarted = false;
  #reportedMs = Number.NEGATIVE_INFINITY;

  constructor(options: LauncherOptions, leave: AbortSignal) {
    this.#options = options;
    this.#connection = connect(options);
    this.#launcher = options.newId();
    this.#over = new AbortController();
    this.#signal = AbortSignal.any([leave, this.#over.signal]);
    this.#unreachable = new LogThrottle((fields, message) => options.log.warn(fields, message));
  }

  async run(): Promise<LeftRunning> {
    // Whichever is refused ends both.
    const both = [this.#follow(), this.#rounds()].map((each) =>
      each.catch((err: unknown) => {
        this.#over.abort();
        throw err;
      }),
    );
    const ends = await Promise.allSettled(both);
    const failed = ends.find((end) => end.status === "rejected");
    if (failed) {
      throw failed.reason;
    }
    const { client } = this.#connection;
    await client
      .endLaunches({ launcher: this.#launcher }, { timeoutMs: CALL_TIMEOUT_MS })
      .catch((err: unknown) => this.#passing(err));
    const states = [...this.#fleets.values()].map(({ state }) => state);
    return { machines: states.reduce((sum, { starting, joined }) => sum + starting + joined, 0) };
  }

  [Symbol.dispose](): void {
    this.#connection[Symbol.dispose]();
  }

  /** Follows what is wanted; a stream that ends is opened again. */
  async #follow(): Promise<void> {
    const backoff = new Backoff(100, MAX_RECONNECT_PAUSE_MS, Math.random);
    while (!this.#signal.aborted) {
      try {
        const told = this.#connection.client.watchWorkersWanted({}, { signal: this.#signal });
        let isFirst = true;
        for await (const { deployments, removedDeploymentIds } of told) {
          backoff.reset();
          this.#want(deployments, isFirst ? this.#unnamed(deployments) : removedDeploymentIds);
          isFirst = false;
        }
      } catch (err) {
        this.#passing(err);
      }
      await backoff.pause(this.#signal);
    }
  }

  /** The first message of a stream has all deployments: those that it does not have are gone. */
  #unnamed(deployments: readonly WorkersWanted[]): string[] {
    const named = new Set(deployments.map(({ deploymentId }) => deploymentId));
    return [...this.#fleets.keys()].filter((id) => !named.has(id));
  }

  #want(deployments: readonly WorkersWanted[], gone: readonly string[]): void {
    // The tokens of their machines have ended with the right to them, and so do the machines.
    for (const deploymentId of gone) {
      this.#fleets.delete(deploymentId);
    }
    for (const wanted of deployments) {
      const { deploymentId } = wanted;
      const fleet = this.#fleets.get(deploymentId);
      if (fleet) {
        fleet.wants(wanted);
      } else {
        const order = (machine: string) => this.#order(deploymentId, machine);
        this.#fleets.set(
          deploymentId,
          new Fleet({ ...this.#options, deploymentId, order }, wanted),
        );
      }
    }
    if (!this.#hasStarted) {
      this.#hasStarted = true;
      this.#options.onStarted([...this.#fleets.values()].map(({ deployment }) => deployment));
    }
    this.#wake.resolve();
  }

  async #rounds(): Promise<void> {
    const { intervalMs = ROUND_INTERVAL_MS } = this.#options;
    const pauseMs = Math.min(ROUND_MIN_INTERVAL_MS, intervalMs);
    await this.#woken(intervalMs);
    while (!this.#signal.aborted) {
      try {
        await this.#round();
      } catch (err) {
        this.#passing(err);
      }
      await sleep(pauseMs, undefined, { signal: this.#signal }).catch(() => undefined);
      await this.#woken(intervalMs - pauseMs);
    }
  }

  /** Resolves when something else is wanted, after a time, or when the launcher ends. */
  async #woken(withinMs: number): Promise<void> {
    const timer = new AbortController();
    const signal = AbortSignal.any([this.#signal, timer.signal]);
    const timed = sleep(withinMs, undefined, { signal }).catch(() => undefined);
    await Promise.race([this.#wake.promise, timed]);
    timer.abort();
    this.#wake = Promise.withResolvers<void>();
  }

  async #round(): Promise<void> {
    const held = new Set(await this.#report());
    this.#tellWaiting(held);
    const fleets = [...this.#fleets].filter(([deploymentId]) => held.has(deploymentId));
    if (fleets.length === 0) {
      return;
    }
    let listed: readonly ClusterMachine[];
    try {
      listed = await this.#options.machines.list();
    } catch (err) {
      const reason = err instanceof Error ? err.message : String(err);
      this.#options.log.warn({ reason }, "the machines cannot be listed");
      for (const [, fleet] of fleets) {
        fleet.unlisted(reason);
      }
      return;
    }
    await Promise.all(
      fleets.map(([deploymentId, fleet]) =>
        fleet.reconcile(listed.filter((machine) => machine.deploymentId === deploymentId)),
      ),
    );
    // People see what this round has changed.
    await this.#report();
  }

  async #report(): Promise<readonly string[]> {
    const { on, hostname, now } = this.#options;
    const { client } = this.#connection;
    this.#reportedMs = now();
    const reports = [...this.#fleets].map(([deploymentId, { state }]) => ({
      deploymentId,
      ...state,
    }));
    const { deploymentIds } = await client.reportLaunches(
      { launcher: this.#launcher, on, hostname, reports },
      { timeoutMs: CALL_TIMEOUT_MS },
    );
    return deploymentIds;
  }

  #tellWaiting(held: ReadonlySet<string>): void {
    for (const [deploymentId, { deployment }] of this.#fleets) {
      if (held.has(deploymentId)) {
        this.#waitedFor.delete(deployment);
      } else if (!this.#waitedFor.has(deployment)) {
        this.#waitedFor.add(deployment);
        const message =
          "another launcher starts the machines of this deployment: waits to take over";
        this.#options.log.info({ deployment }, message);
      }
    }
  }

  async #order(deploymentId: string, machine: string): Promise<MachineOrder> {
    const { url, labels, workers, lifetimeMs, now } = this.#options;
    const { client } = this.#connection;
    // A round of many starts may last longer than the deployments are its own without a report.
    if (now() - this.#reportedMs >= ROUND_INTERVAL_MS) {
      await this.#report();
    }
    const lifetime = durationFromMs(lifetimeMs);
    const { value, expiresAt } = await client.createMachineToken(
      { launcher: this.#launcher, deploymentId, machine, lifetime },
      { timeoutMs: CALL_TIMEOUT_MS },
    );
    const endsAtMs = expiresAt ? timestampMs(expiresAt) : now() + lifetimeMs;
    const deployment = this.#fleets.get(deploymentId)?.deployment ?? "";
    return {
      id: machine,
      deploymentId,
      endsAtMs,
      env: {
        TESSERA_JOIN: url,
        TESSERA_WORKER_TOKEN: value,
        TESSERA_DEPLOYMENT: deployment,
        TESSERA_WORKERS: String(workers),
        TESSERA_LABELS: Object.entries(labels)
          .map((label) => label.join("="))
          .join(","),
        TESSERA_UNTIL: new Date(endsAtMs).toISOString(),
      },
    };
  }

  /** Throws a `LauncherRefused` where trying again changes nothing. */
  #passing(err: unknown): void {
    if (this.#signal.aborted) {
      return;
    }
    const { code, rawMessage } = ConnectError.from(err);
    const isKnown = errorFacts(err).reason !== undefined;
    if (
      code === Code.Unauthenticated ||
      code === Code.PermissionDenied ||
      code === Code.Unimplemented
    ) {
      throw new LauncherRefused(rawMessage, { cause: err });
    }
    const reason = isKnown ? rawMessage : `the platform cannot be reached (${rawMessage})`;
    this.#unreachable.say({ reason }, "the launcher waits for the platform");
  }
}

// The launcher's connection to its platform: gRPC over HTTP/2, with the token in each call.

/**
 * How often a connection on which nothing is said is tried; one that is half open ends so. What is
 * wanted is followed all the time: one without a call need not be tried, and the session manager
 * would also try one that was closed, and throw.
 */
const PING_INTERVAL_MS = 20_000;
/** How long the platform may take to answer that. */
const PING_TIMEOUT_MS = 10_000;

interface Connection extends Disposable {
  readonly client: Client<typeof LauncherService>;
}

/** Opens a connection with the first call, and again after one that broke. */
function connect({ url, token }: { readonly url: string; readonly token: string }): Connection {
  const sessionManager = new Http2SessionManager(url, {
    pingIntervalMs: PING_INTERVAL_MS,
    pingTimeoutMs: PING_TIMEOUT_MS,
  });
  const transport = createGrpcTransport({
    baseUrl: url,
    sessionManager,
    interceptors: [
      (next) => (req) => {
        req.header.set("authorization", `Bearer ${token}`);
        return next(req);
      },
    ],
  });
  return {
    client: createClient(LauncherService, transport),
    [Symbol.dispose]: () => sessionManager.abort(),
  };
}
