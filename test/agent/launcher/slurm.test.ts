/** Machines as jobs of Slurm, with programs that the test plays. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SlurmJobs } from "../../../src/agent/launcher/slurm.ts";
import { Programs } from "./programs.ts";

const POLL = { timeout: 30_000 };
const NOW_MS = Date.UTC(2026, 0, 31, 12);
const MACHINE = { id: "019aa51c-00aa", deploymentId: "019aa51c-00dd" };
const NAME = "tessera.019aa51c-00dd.019aa51c-00aa";

const jobs = ({ run }: Programs, command = ["tessera", "worker"]) =>
  new SlurmJobs({ options: ["--partition=gpu", "--gres=gpu:1"], command, run, now: () => NOW_MS });

const ORDER = {
  ...MACHINE,
  env: { TESSERA_WORKER_TOKEN: "it's secret" },
  endsAtMs: NOW_MS + 90.5 * 60_000,
};

it("submits a job with the time that its machine has, and the token in its script alone", async () => {
  using programs = new Programs();
  programs.play("sbatch", "cat > script; echo 7");
  await jobs(programs, ["tessera", "worker", "--data", "/scratch/a b"]).start(ORDER);
  expect(programs.calls("sbatch")).toEqual([
    `--parsable --no-requeue --job-name=${NAME} --time=90 --output=/dev/null --partition=gpu --gres=gpu:1`,
  ]);
  const script = programs.read("script");
  expect(script).toMatch(/^#!\/bin\/sh\nexport TESSERA_WORKER_TOKEN='it'\\''s secret'\n/);
  expect(script).toContain("\n'tessera' 'worker' '--data' '/scratch/a b' &\n");
});

it("hands the launcher's own token to no job", async () => {
  using programs = new Programs();
  programs.play("sbatch", "env > environment");
  await jobs(programs).start(ORDER);
  expect(programs.read("environment")).not.toContain("of the launcher");
});

it("says what Slurm says when it takes no job", async () => {
  using programs = new Programs();
  programs.play("sbatch", "echo 'sbatch: error: QOSMaxSubmitJobPerUserLimit' >&2; exit 1");
  await expect(jobs(programs).start(ORDER)).rejects.toThrow(
    "sbatch: sbatch: error: QOSMaxSubmitJobPerUserLimit",
  );
});

it("lists its jobs: those that wait, with the reason, those that run, and those that are over", async () => {
  using programs = new Programs();
  const line = (id: number, state: string, reason: string) =>
    `echo 'tessera.d.m${id}|${state}|2026-01-31T12:00:00|${reason}'`;
  programs.play(
    "squeue",
    [
      line(1, "PENDING", "QOSMaxJobsPerUserLimit"),
      line(2, "RUNNING", "None"),
      line(3, "TIMEOUT", "TimeLimit"),
      line(4, "COMPLETED", "None"),
      "echo 'train.sh|RUNNING|2026-01-31T12:00:00|None'",
    ].join("\n"),
  );
  const listed = await jobs(programs).list();
  expect(
    listed.map(({ id, isWaiting, isOver, reason }) => [id, isWaiting, isOver, reason]),
  ).toEqual([
    ["m1", true, false, "PENDING (QOSMaxJobsPerUserLimit)"],
    ["m2", false, false, "RUNNING"],
    ["m3", false, true, "TIMEOUT (TimeLimit)"],
    ["m4", false, true, "COMPLETED"],
  ]);
  expect(listed[0]?.deploymentId).toBe("d");
  expect(listed[0]?.startedAtMs).toBe(new Date("2026-01-31T12:00:00").getTime());
});

it("tells the worker of a job to end, and ends a job by force", async () => {
  using programs = new Programs();
  programs.play("scancel", "");
  await jobs(programs).stop(MACHINE);
  await jobs(programs).stop(MACHINE, { force: true });
  expect(programs.calls("scancel")).toEqual([
    `--quiet --state=PENDING --name=${NAME}`,
    `--quiet --batch --signal=TERM --name=${NAME}`,
    `--quiet --state=PENDING --name=${NAME}`,
    `--quiet --name=${NAME}`,
  ]);
});

it("runs a worker in a folder of its own, tells it to end, and ends as it does", async () => {
  using programs = new Programs();
  programs.play("sbatch", "cat > script");
  const worker =
    "trap 'echo told > told; exit 7' TERM; echo \"$TESSERA_DATA\" > data; until [ -e told ]; do sleep 0.05; done";
  await jobs(programs, ["bash", "-c", worker]).start(ORDER);
  const { TESSERA_DATA: _, ...env } = process.env;
  const job = spawn("sh", ["script"], { cwd: programs.folder, env });
  const ended = once(job, "exit");
  await expect
    .poll(() => existsSync(join(programs.folder, "data")) && programs.read("data"), POLL)
    .toMatch(/\n$/);
  const data = programs.read("data").trim();
  expect(existsSync(data)).toBe(true);
  job.kill("SIGTERM");
  expect(await ended).toEqual([7, null]);
  expect(existsSync(data)).toBe(false);
});
