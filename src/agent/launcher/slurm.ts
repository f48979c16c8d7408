/**
 * Machines as jobs of Slurm. The name of a job is that of its machine, by which any launcher finds
 * it again; the end of its time is that of its token, and its worker takes no call that might not
 * end before.
 *
 * The script of a job has the token in it: Slurm shows it to its user and to administrators alone.
 */
import type { ClusterMachine, MachineOrder, Machines } from "./machines.ts";
import { exports, jobScript, type Run } from "./run.ts";

/** Jobs that go on, or will: all others are over. */
const PENDING = new Set([
  "PENDING",
  "REQUEUED",
  "REQUEUE_HOLD",
  "REQUEUE_FED",
  "RESV_DEL_HOLD",
  "SPECIAL_EXIT",
]);
const RUNNING = new Set([
  "RUNNING",
  "CONFIGURING",
  "COMPLETING",
  "RESIZING",
  "SIGNALING",
  "STAGE_OUT",
  "STOPPED",
  "SUSPENDED",
]);

interface SlurmOptions {
  /** More arguments for `sbatch`. */
  readonly options: readonly string[];
  /** What a job runs. */
  readonly command: readonly string[];
  readonly run: Run;
  readonly now: () => number;
}

/** The launcher's machines on Slurm. */
export class SlurmJobs implements Machines {
  readonly #options: SlurmOptions;

  constructor(options: SlurmOptions) {
    this.#options = options;
  }

  async start({ id, deploymentId, env, endsAtMs }: MachineOrder): Promise<void> {
    const { options, command, now } = this.#options;
    const minutes = Math.max(1, Math.floor((endsAtMs - now()) / 60_000));
    const script = `#!/bin/sh\n${exports(env)}${jobScript(command, { toldTogether: false })}`;
    await this.#options.run(
      [
        "sbatch",
        ...["--parsable", "--no-requeue", `--job-name=${nameOf({ id, deploymentId })}`],
        ...[`--time=${minutes}`, "--output=/dev/null", ...options],
      ],
      script,
    );
  }

  /** The signal goes to the worker alone, which finishes its calls; Slurm itself would give it half a minute. */
  async stop(
    machine: Pick<ClusterMachine, "id" | "deploymentId">,
    { force } = { force: false },
  ): Promise<void> {
    const how = force ? [] : ["--batch", "--signal=TERM"];
    const name = `--name=${nameOf(machine)}`;
    // A job that waits gets no signal.
    await this.#options.run(["scancel", "--quiet", "--state=PENDING", name]);
    await this.#options.run(["scancel", "--quiet", ...how, name]);
  }

  async list(): Promise<readonly ClusterMachine[]> {
    const said = await this.#options.run([
      ...(["squeue", "--me", "--noheader", "--states=all"] as const),
      "--format=%j|%T|%V|%r",
    ]);
    return said.split("\n").flatMap((line) => this.#machineOf(line));
  }

  #machineOf(line: string): ClusterMachine[] {
    const [name = "", state = "", submitted = "", reason = ""] = line.trim().split("|");
    const [, deploymentId, id] = /^tessera\.([\w-]+)\.([\w-]+)$/.exec(name) ?? [];
    if (deploymentId === undefined || id === undefined) {
      return [];
    }
    // In the time of the cluster's machine, which is that of this one.
    const startedAtMs = Date.parse(submitted) || this.#options.now();
    const isWaiting = PENDING.has(state);
    const said = reason === "" || reason === "None" ? state : `${state} (${reason})`;
    const isOver = !isWaiting && !RUNNING.has(state);
    return [{ id, deploymentId, startedAtMs, isWaiting, isOver, reason: said }];
  }
}

function nameOf({ id, deploymentId }: Pick<ClusterMachine, "id" | "deploymentId">): string {
  return `tessera.${deploymentId}.${id}`;
}
