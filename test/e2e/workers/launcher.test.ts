/** `tessera launcher --on exec` with a real platform: machines are processes of this host. */
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { WorkerPlace } from "../../../src/client/index.ts";
import { isAlive, Program } from "../cli/program.ts";
import { artifact, until, World } from "../hosting/world.ts";

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
  readdirSync(join(data, "machines")).map((machine) =>
    Number.parseInt(readFileSync(join(data, "machines", machine, "pid"), "utf8"), 10),
  );

const launches = async () => (await world.client.launchers.listLaunches({})).launches;

it("keeps a machine running for a deployment, over the end of a launcher, until its token ends", async () => {
  const settings = { place: WorkerPlace.REMOTE, minWorkers: 1, maxWorkers: 1 };
  await world.deploy("afar", await artifact(), { settings });
  const fields = { access: ["launch"], deployments: ["afar"] };
  const token = await world.platform.createToken(world.cookie, fields);
  const first = launcherOf(token.value);
  await first.says("stdout", /Starts machines on exec[\s\S]*afar[\s\S]*Ctrl-C/);
  await until(launches, ([launch]) => launch?.joined === 1);
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
  await until(
    async () => machines.map(isAlive),
    (alive) => alive.every((each) => !each),
  );
});
