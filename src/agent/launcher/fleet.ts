/**
 * The machines of one deployment: compares what is wanted with what the cluster has and what has
 * joined, and starts and stops the difference.
 *
 *   starting  the cluster has taken it, and it has not joined; counts as there. Where the cluster
 *             lets it wait, it may wait until its time is over
 *   joined    a worker of it took calls once; counts while the platform has it, and a minute
 *             longer: a node that restarts is without its workers for some seconds
 *   leaving   it was told to stop, has left the platform by itself before its end, or is drained;
 *             does not count
 *   over      removed; where it had never joined, that is a failure
 *
 * A start that the cluster refuses, a machine that ends before it has joined, and one that does
 * not join in time are failures. After one, a single machine is tried at a time, with a pause
 * that doubles up to five minutes, until one that was started after it has joined. The reason of
 * the last failure is what people are told.
 *
 * Nothing is remembered beyond the process: the cluster knows the machines by their ids, and the
 * platform knows which of them have joined. So a launcher that was killed goes on where it was.
 */
import type { WorkersWanted } from "../../../gen/tessera/v1/launcher_pb.js";
import type { Log } from "../../log/log.ts";
import { Backoff } from "../../time/backoff.ts";
import type { ClusterMachine, MachineOrder, Machines } from "./machines.ts";

/** The longest first pause after a failure. */
const FIRST_RETRY_PAUSE_MS = 5_000;
/** The longest pause after a failure. */
const MAX_RETRY_PAUSE_MS = 300_000;

/**
 * How long a machine may be missing before it counts as gone, and how long there are more than are
 * wanted before one is stopped: nodes that restart, or tell each other late, cost no machines.
 */
const SETTLE_MS = 60_000;

/** Machines that are started before the cluster is looked at again. */
const MAX_STARTS_PER_ROUND = 20;

/** How long a machine is let be after its end, before it is ended by force. */
const OVERTIME_MS = 60_000;

/** Longest reason of a failure that is reported. */
const MAX_REASON_CHARACTERS = 1_000;

/** What the launcher's machines are. */
export interface MachineKind {
  /** At most this many of each deployment. */
  readonly maxMachines: number;
  /** Workers that each brings. */
  readonly workers: number;
  readonly labels: { readonly [name: string]: string };
  /** After this time, one that has not joined is given up. */
  readonly joinWithinMs: number;
  readonly lifetimeMs: number;
}

interface FleetOptions extends MachineKind {
  readonly deploymentId: string;
  readonly machines: Machines;
  /** Gets a token for a machine, and makes the order of it. */
  order(machine: string): Promise<MachineOrder>;
  newId(): string;
  readonly now: () => number;
  readonly log: Log;
  readonly settleMs?: number;
  /** Which part of a pause is made, from 0 to 1. Default: from a half to all, so that launchers do not come together. */
  readonly pausePart?: () => number;
}

/** What a fleet says of itself. */
interface FleetState {
  readonly machines: number;
  readonly starting: number;
  readonly joined: number;
  readonly failed: number;
  readonly reason: string;
}

interface Note {
  readonly startedAtMs: number;
  /** The failures that there were when it was started. */
  readonly epoch: number;
  /** When it began to run, as far as is known; undefined while the cluster lets it wait. */
  ranSinceMs: number | undefined;
  /** The cluster has shown it. */
  isListed: boolean;
  hasJoined: boolean;
  /** When the platform had it last. */
  seenMs: number;
  /** `removed`: it is over, and the cluster has been told to remove it, which may take a while. */
  state: "there" | "stopping" | "over" | "removed";
}

export class Fleet {
  readonly #options: FleetOptions;
  readonly #notes = new Map<string, Note>();
  readonly #backoff: Backoff;
  #wanted: WorkersWanted;
  #failed = 0;
  #reason = "";
  /** What the cluster refused in the last round, besides starts. Empty: nothing. */
  #trouble = "";
  /** Why machines are not there yet, as far as the cluster says. Empty: nothing. */
  #pending = "";
  /** Counts failures, to tell machines that were started after the last one. */
  #epoch = 0;
  #resumeAtMs = Number.NEGATIVE_INFINITY;
  /** Since when there are more than are wanted. */
  #excessSinceMs: number | undefined;
  #counts = { starting: 0, joined: 0 };

  constructor(options: FleetOptions, wanted: WorkersWanted) {
    this.#options = options;
    this.#wanted = wanted;
    this.#backoff = new Backoff(
      FIRST_RETRY_PAUSE_MS,
      MAX_RETRY_PAUSE_MS,
      options.pausePart ?? (() => 0.5 + Math.random() / 2),
    );
  }

  /** The deployment's name. */
  get deployment(): string {
    return this.#wanted.deployment;
  }

  get state(): FleetState {
    const said = this.#unfit ?? (this.#trouble || this.#reason || this.#pending);
    const reason = said.slice(0, MAX_REASON_CHARACTERS);
    return { machines: this.#target, ...this.#counts, failed: this.#failed, reason };
  }

  /** The platform wants something else, or knows other machines. */
  wants(wanted: WorkersWanted): void {
    this.#wanted = wanted;
  }

  /** Starts and stops what is to be, by what the cluster lists of this deployment. */
  async reconcile(listed: readonly ClusterMachine[]): Promise<void> {
    this.#trouble = "";
    const joined = this.#notice(listed);
    await this.#tidy(listed);
    if (this.#target === 0) {
      this.#failed = 0;
      this.#reason = "";
    }
    const alive = [...this.#notes].filter(([, note]) => this.#isThere(note));
    // One that has joined and that the cluster does not know was started elsewhere: it counts.
    const strangers = [...joined].filter((id) => !this.#notes.has(id)).length;
    this.#counts = {
      starting: alive.filter(([, { hasJoined }]) => !hasJoined).length,
      joined: alive.filter(([, { hasJoined }]) => hasJoined).length + strangers,
    };
    const missing = this.#target - alive.length - strangers;
    if (missing > 0) {
      this.#excessSinceMs = undefined;
      await this.#start(missing);
    } else {
      await this.#stopExcess(alive, -missing);
    }
  }

  /** The cluster did not list its machines: nothing is started or stopped meanwhile. */
  unlisted(reason: string): void {
    this.#trouble = `the machines cannot be listed: ${reason}`;
  }

  get #target(): number {
    const { maxMachines, workers } = this.#options;
    return this.#unfit === undefined
      ? Math.min(maxMachines, Math.ceil(this.#wanted.workers / workers))
      : 0;
  }

  /** Why the machines of this launcher cannot join at all. */
  get #unfit(): string | undefined {
    const { labels } = this.#options;
    const missing = Object.entries(this.#wanted.requires)
      .filter(([name, value]) => {
        const own = Object.hasOwn(labels, name) ? labels[name] : undefined;
        return own === undefined || (value !== "*" && value !== own);
      })
      .map(([name, value]) => `${name}=${value === "*" ? "VALUE" : value}`);
    return missing.length === 0
      ? undefined
      : `the deployment requires ${missing.join(", ")}, which the machines of this launcher do not have: start it with --label ${missing.join(" --label ")}, where they do`;
  }

  /** Notes what the cluster and the platform say. Returns the machines that the platform has. */
  #notice(listed: readonly ClusterMachine[]): ReadonlySet<string> {
    const { now, joinWithinMs } = this.#options;
    const nowMs = now();
    for (const { id, startedAtMs, isWaiting, isOver } of listed) {
      const ranSinceMs = isWaiting ? undefined : nowMs;
      const note = this.#notes.get(id);
      if (note) {
        note.isListed = true;
        note.ranSinceMs ??= ranSinceMs;
      } else {
        // Of an earlier launcher. One that is old and not there has joined and left, as far as is known.
        const hasJoined = !isWaiting && nowMs - startedAtMs > joinWithinMs;
        this.#notes.set(id, {
          startedAtMs,
          ranSinceMs,
          hasJoined,
          epoch: this.#epoch,
          isListed: true,
          seenMs: nowMs,
          state: isOver ? "over" : "there",
        });
      }
    }
    for (const { machine, ready } of this.#wanted.machines) {
      const note = this.#notes.get(machine);
      if (note) {
        note.seenMs = nowMs;
        if (ready && !note.hasJoined) {
          note.hasJoined = true;
          this.#joined(note);
        }
      }
    }
    this.#pending = this.#pendingText(listed);
    return new Set(this.#wanted.machines.map(({ machine }) => machine));
  }

  /** Why those wait that the cluster does not run yet, or else what it says of those that have not joined. */
  #pendingText(listed: readonly ClusterMachine[]): string {
    const pending = listed.filter(({ id, isOver }) => {
      const note = this.#notes.get(id);
      return !isOver && note?.state === "there" && !note.hasJoined;
    });
    const waiting = pending.filter(({ isWaiting }) => isWaiting);
    if (waiting.length > 0) {
      return `${waiting.length} wait for the cluster: ${waiting[0]?.reason}`;
    }
    const said = pending.find(({ reason }) => reason !== "");
    return said === undefined
      ? ""
      : `${pending.length} ${pending.length === 1 ? "has" : "have"} not joined yet: ${said.reason}`;
  }

  #joined({ epoch }: Note): void {
    if (epoch === this.#epoch) {
      this.#failed = 0;
      this.#reason = "";
      this.#backoff.reset();
      this.#resumeAtMs = Number.NEGATIVE_INFINITY;
    }
  }

  /** Removes what is over, and gives up what does not join or does not end. */
  async #tidy(listed: readonly ClusterMachine[]): Promise<void> {
    const { now, joinWithinMs, lifetimeMs, log } = this.#options;
    const byId = new Map(listed.map((machine) => [machine.id, machine]));
    for (const [id, note] of this.#notes) {
      const found = byId.get(id);
      const ageMs = now() - note.startedAtMs;
      const said = found?.reason ? `: ${found.reason}` : "";
      if (found === undefined && !note.isListed && ageMs < this.#settleMs) {
        continue;
      }
      const hasFailed = note.state === "there" && !note.hasJoined;
      if (found === undefined || found.isOver) {
        if (hasFailed) {
          this.#fail(`a machine ended before it had joined${said}`);
        }
        if (note.state === "there" || note.state === "stopping") {
          note.state = "over";
          log.info(
            { machine: id, deployment: this.deployment, reason: found?.reason },
            "a machine is over",
          );
        }
        // Of one that went by itself something may be left, such as its Secret.
        if (note.state === "over" && (await this.#stop(id))) {
          note.state = "removed";
        }
        if (found === undefined) {
          this.#notes.delete(id);
        }
      } else if (hasFailed && now() - (note.ranSinceMs ?? now()) > joinWithinMs) {
        if (await this.#stop(id)) {
          this.#fail(`a machine had not joined after ${Math.round(joinWithinMs / 1_000)} s${said}`);
        }
      } else if (hasFailed && ageMs > lifetimeMs) {
        if (await this.#stop(id)) {
          this.#fail(`a machine waited for the cluster until its time was over${said}`);
        }
      } else if (ageMs > lifetimeMs + OVERTIME_MS) {
        log.warn(
          { machine: id, deployment: this.deployment },
          "a machine is ended by force: its time is over",
        );
        await this.#stop(id, { force: true });
      }
    }
  }

  #isThere({ state, hasJoined, seenMs }: Note): boolean {
    const isMissing = this.#options.now() - seenMs >= this.#settleMs;
    return state === "there" && !(hasJoined && isMissing);
  }

  async #start(missing: number): Promise<void> {
    const { machines, order, newId, now, log } = this.#options;
    const tried = [...this.#notes.values()].some(
      ({ epoch, hasJoined, state }) => epoch === this.#epoch && !hasJoined && state === "there",
    );
    if (now() < this.#resumeAtMs || (this.#failed > 0 && tried)) {
      return;
    }
    const atOnce = this.#failed > 0 ? 1 : MAX_STARTS_PER_ROUND;
    for (let left = Math.min(missing, atOnce); left > 0; left -= 1) {
      const id = newId();
      try {
        const ordered = await order(id);
        const nowMs = now();
        this.#notes.set(id, {
          startedAtMs: nowMs,
          ranSinceMs: undefined,
          hasJoined: false,
          epoch: this.#epoch,
          isListed: false,
          seenMs: nowMs,
          state: "there",
        });
        await machines.start(ordered);
      } catch (err) {
        this.#notes.delete(id);
        this.#fail(`a machine could not be started: ${textOf(err)}`);
        return;
      }
      this.#counts = { ...this.#counts, starting: this.#counts.starting + 1 };
      log.info({ machine: id, deployment: this.deployment }, "a machine is started");
    }
  }

  /** Those that have not joined first, the youngest first, and then the oldest. */
  async #stopExcess(alive: readonly [string, Note][], excess: number): Promise<void> {
    const { now, log } = this.#options;
    if (excess === 0) {
      this.#excessSinceMs = undefined;
      return;
    }
    this.#excessSinceMs ??= now();
    if (now() - this.#excessSinceMs < this.#settleMs) {
      return;
    }
    const starting = alive
      .filter(([, { hasJoined }]) => !hasJoined)
      .sort(([, one], [, other]) => other.startedAtMs - one.startedAtMs);
    const joined = alive
      .filter(([, { hasJoined }]) => hasJoined)
      .sort(([, one], [, other]) => one.startedAtMs - other.startedAtMs);
    for (const [id] of [...starting, ...joined].slice(0, excess)) {
      log.info({ machine: id, deployment: this.deployment }, "a machine is not wanted any more");
      await this.#stop(id);
    }
  }

  /** Whether the cluster took it: one that could not be stopped is told again in the next round. */
  async #stop(id: string, how = { force: false }): Promise<boolean> {
    const { machines, deploymentId } = this.#options;
    const note = this.#notes.get(id);
    try {
      await machines.stop({ id, deploymentId }, how);
      if (note?.state === "there") {
        note.state = "stopping";
      }
      return true;
    } catch (err) {
      this.#trouble = `a machine could not be stopped: ${textOf(err)}`;
      return false;
    }
  }

  #fail(reason: string): void {
    const { now, log } = this.#options;
    this.#failed += 1;
    this.#reason = reason;
    this.#epoch += 1;
    // Machines that fail together make one pause.
    if (now() >= this.#resumeAtMs) {
      this.#resumeAtMs = now() + this.#backoff.begin();
    }
    log.warn({ deployment: this.deployment, reason, failed: this.#failed }, "a machine failed");
  }

  get #settleMs(): number {
    return this.#options.settleMs ?? SETTLE_MS;
  }
}

function textOf(err: unknown): string {
  return err instanceof Error ? err.message : String(err);
}
