/** Two nodes with the tasks of their platform in two cells, of which one is killed and comes back. */
import { afterEach, beforeEach, expect, it } from "vitest";
import { cellOfTaskId, createIdSource } from "../../../src/tasks/id.ts";
import { type PostgresServer, startPostgres } from "../../postgres.ts";
import { Program, run } from "../cli/program.ts";
import { newPostgres } from "../start/databases.ts";
import { bearer } from "../start/platform.ts";
import { artifact, call, until, World } from "./world.ts";

const OPERATOR = "operator-token-of-this-test-0123456789";

let server: PostgresServer;
let env: Record<string, string>;
let world: World;
let program: Program;

beforeEach(async () => {
  server = await startPostgres({ durable: true });
  const [database, a] = [await newPostgres(), await newPostgres()];
  env = { DATABASE_URL: database, TESSERA_CELLS: `a=${a},b=${server.url}` };
  world = await World.start({ database, env: { ...env, TESSERA_METRICS_TOKEN: OPERATOR } });
  program = new Program(["start", "--port", "0", "--data", world.folder.data], {
    cwd: world.folder.path,
    env,
  });
});
afterEach(async () => {
  await program[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** Which cells answer the first node, by its metrics. */
async function answering(): Promise<Record<string, string>> {
  const res = await fetch(`${world.platform.url}/metrics`, { headers: bearer(OPERATOR) });
  const lines = (await res.text()).matchAll(/^tessera_cell_up\{cell="(\w+)".*\} (\S+)/gm);
  return Object.fromEntries([...lines].map(([, cell, up]) => [cell, up]));
}

async function cells(): Promise<Record<string, string>> {
  const args = ["admin", "cells", "--json", "--data", world.folder.data];
  const { stdout } = await run(args, { cwd: world.folder.path, env });
  const rows = JSON.parse(stdout) as { name: string; state: string }[];
  return Object.fromEntries(rows.map(({ name, state }) => [name, state]));
}

it("lose no task that was accepted, and go on with the other cell meanwhile", async () => {
  const [, port = ""] = await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
  const nodes = [world.platform, { started: { ...world.platform.started, port: Number(port) } }];
  await world.deployed("echo", await artifact(), { settings: { minWorkers: 2, maxWorkers: 2 } });
  await world.until("echo", ({ nodes: serving }) => serving === 2);
  expect(await cells()).toEqual({ home: "up", a: "up", b: "up" });

  const accepted = new Map<string, string>();
  let asked = 0;
  const submit = async (forMs = 0): Promise<number> => {
    asked += 1;
    const text = `task ${asked}`;
    const node = nodes[asked % 2];
    if (node === undefined) {
      throw new Error("there are two nodes");
    }
    const { status, json } = await call(node, "echo", "/work/submit", { body: { text, forMs } });
    if (status === 202) {
      accepted.set(json.task_id, text);
    }
    return status;
  };
  const inCell = (cell: number): string[] =>
    [...accepted.keys()].filter((id) => cellOfTaskId(id) === cell);
  for (let round = 0; round < 24; round += 1) {
    expect(await submit(round < 8 ? 1_500 : 0)).toBe(202);
  }
  expect([inCell(0).length, inCell(1).length, inCell(2).length]).toEqual([0, 12, 12]);

  await server.stop();
  // A submit that finds out is refused; then there are none to the cell that is away.
  await until(
    async () => ({ status: await submit() }),
    () => inCell(1).length >= 30,
  );
  const result = async (id: string): Promise<string> =>
    (await call(world.platform, "echo", `/work/get?task_id=${id}&wait=50`)).text;
  for (const id of inCell(1)) {
    expect(await result(id)).toBe(`one ${accepted.get(id)}`);
  }
  for (const node of nodes) {
    expect((await fetch(`http://127.0.0.1:${node.started.port}/readyz`)).status).toBe(200);
  }
  expect(await cells()).toEqual({ home: "up", a: "up", b: "away" });
  expect(await answering()).toEqual({ a: "1", b: "0" });
  const table = await run(["admin", "cells"], { cwd: world.folder.path, env });
  expect(table.stdout).toMatch(/^CELL +NUMBER +STATE/);
  expect(table.stderr).toMatch(/^b: cannot open the database postgres:/m);
  expect(table.code).toBe(1);
  // One of its own that has ended may be remembered by the node.
  const unknown = createIdSource()(2);
  expect((await call(world.platform, "echo", `/work/status?task_id=${unknown}`)).status).toBe(503);

  await server.start();
  for (const [id, text] of accepted) {
    await until(
      () => call(world.platform, "echo", `/work/get?task_id=${id}&wait=20`),
      ({ text: got }) => got === `one ${text}`,
    );
  }
  expect(await cells()).toEqual({ home: "up", a: "up", b: "up" });
  expect(await answering()).toEqual({ a: "1", b: "1" });

  const args = ["admin", "cells", "close", "b", "--yes", "--data", world.folder.data];
  expect(await run(args, { cwd: world.folder.path, env })).toMatchObject({ code: 0 });
  expect(await cells()).toEqual({ home: "up", a: "up", b: "closed" });
  await until(
    async () => {
      const before = inCell(2).length;
      await Promise.all([submit(), submit(), submit(), submit()]);
      return inCell(2).length - before;
    },
    (taken) => taken === 0,
  );
}, 120_000);
