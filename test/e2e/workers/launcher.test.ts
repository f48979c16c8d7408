/** `tessera launcher --on exec` with a real platform: machines are processes of this host. */
import { existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTesseraClient, WorkerPlace } from "../../../src/client/index.ts";
import { isAlive, Program } from "../cli/program.ts";
import { artifact, World } from "../hosting/world.ts";

const POLL = { timeout: 100_000 };
const TEST_TIMEOUT_MS = 300_000;

let world: World;
let data: string;
beforeAll(async () => {
  world = await World.start();
  data = mkdtempSync(join(world.folder.path, "launcher-"));
});
afterAll(async () => {
  // Those of a test that failed.
  for (const pid of pids().filter(isAlive)) {
    process.kill(pid, "SIGKILL");
  }
  await world[Symbol.asyncDispose]();
});

const launcherOf = (token: string): Program =>
  new Program(["launcher", "--join", world.platform.url, "--on", "exec", "--data", data], {
    env: { TESSERA_LAUNCH_TOKEN: token, TESSERA_SANDBOX: "permission", TESSERA_LOG_LEVEL: "info" },
  });

/** The processes of the machines. */
const pids = (): number[] =>
  (existsSync(join(data, "machines")) ? readdirSync(join(data, "machines")) : []).map((machine) =>
    Number.parseInt(readFileSync(join(data, "machines", machine, "pid"), "utf8"), 10),
  );

const launches = async () => (await world.client.launchers.listLaunches({})).launches;

it("keeps a machine running for a deployment, over the end of a launcher, until its token ends", {
  timeout: TEST_TIMEOUT_MS,
}, async () => {
  const settings = { place: WorkerPlace.REMOTE, minWorkers: 1, maxWorkers: 1 };
  const { deploymentId } = await world.deploy("afar", await artifact(), { settings });
  const fields = { access: ["launch"], deployments: ["afar"] };
  const token = await world.platform.createToken(world.cookie, fields);

  // One that gets no machine is why nothing comes, in the status and for each task.
  const { url } = world.platform;
  const { launchers: said } = createTesseraClient({ url, token: token.value ?? "" });
  const launcher = crypto.randomUUID();
  const reports = [{ deploymentId, machines: 1, failed: 1, reason: "no quota" }];
  await said.reportLaunches({ launcher, on: "slurm", hostname: "login", reports });
  const statusReason = async () =>
    (await world.client.deployments.getDeployment({ deployment: "afar" })).statusReason;
  await expect
    .poll(statusReason, POLL)
    .toMatch(/^waits for a worker that joins: .*; the launcher on slurm says: no quota$/);
  const { json: task } = await world.call("afar", "/work/submit", { body: { text: "waits" } });
  const { queuedReason } = await world.client.tasks.getTask({
    ...{ deployment: "acme/afar", endpoint: "work", taskId: task.task_id },
  });
  expect(queuedReason).toMatchObject({
    message: expect.stringMatching(/^no worker runs it.*: the launcher on slurm says: no quota$/),
  });
  await said.endLaunches({ launcher });

  const first = launcherOf(token.value);
  await first.says("stdout", /Starts machines on exec[\s\S]*afar[\s\S]*Ctrl-C/);
  await expect.poll(launches, POLL).toMatchObject([{ joined: 1 }]);
  const done = await world.call("afar", `/work/get?task_id=${task.task_id}&wait=60`);
  expect([done.status, done.text]).toEqual([200, expect.stringContaining("one waits")]);
  const { workers } = await world.client.deployments.listWorkers({ deployment: "afar" });
  expect(workers).toMatchObject([{ ready: true, machine: {} }]);
  const machines = pids();
  expect(machines).toHaveLength(1);

  await first.stop("SIGKILL");
  expect(machines.map(isAlive)).toEqual([true]);
  await using second = launcherOf(token.value);
  await second.says("stdout", /Starts machines on exec/);
  const { status, text } = await world.call("afar", "/variable", { body: { name: "HOME" } });
  expect(status, text).toBe(200);
  expect(pids()).toEqual(machines);

  const deleted = await fetch(`${world.platform.url}/api/v1/tokens/${token.id}`, {
    method: "DELETE",
    headers: world.cookie,
  });
  expect(deleted.status).toBe(200);
  const ended = await second.ended;
  expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("refuses the launcher")]);
  await expect.poll(() => machines.map(isAlive), POLL).toEqual([false]);
});
