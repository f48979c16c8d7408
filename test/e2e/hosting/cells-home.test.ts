/**
 * What home is asked while tasks pass through cells: nothing for a task, so no statement as often as there
 * are tasks. What nodes ask it as time passes goes on, and so do hints between nodes, of which each sends
 * at most one batch in 10 ms. `TESSERA_CELLS_LIFECYCLES` says how many tasks there are.
 */
import { Agent } from "node:http";
import pg from "pg";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { cellOfTaskId, HOME_CELL } from "../../../src/tasks/id.ts";
import { newPostgres } from "../start/databases.ts";
import { artifact, World } from "./world.ts";

const LIFECYCLES = Number(process.env.TESSERA_CELLS_LIFECYCLES ?? 300);
const WARM_UP = 50;
const CALLERS = 16;
/** What a node asks of itself, of each kind: less than it has lifecycles, on any machine. */
const MAX_PER_SECOND = 8;
const MAX_AT_ONCE = 20;
const HINTS = "SELECT pg_notify($1, $2)";

let home: string;
let world: World;
let token: string;
const agent = new Agent({ keepAlive: true });

beforeAll(async () => {
  home = await newPostgres();
  const [a, b] = [await newPostgres(), await newPostgres()];
  const env = { DATABASE_URL: home, TESSERA_CELLS: `a=${a},b=${b}` };
  world = await World.start({ database: home, env });
  const settings = { minWorkers: 2, maxWorkers: 2 };
  await world.deployed("echo", await artifact(), { settings });
  const access = { access: ["protected_endpoint"], deployments: ["echo"] };
  token = (await world.platform.createToken(world.cookie, access)).value;
}, 120_000);
afterAll(async () => {
  agent.destroy();
  await world[Symbol.asyncDispose]();
});

/** Runs lifecycles, from a submit to the result. */
async function lifecycles(count: number): Promise<void> {
  let begun = 0;
  const caller = async (): Promise<void> => {
    while (begun < count) {
      begun += 1;
      const text = `task ${begun}`;
      const submitted = await world.call("echo", "/work/submit", { body: { text }, token, agent });
      expect(submitted.status).toBe(202);
      const { task_id: taskId } = submitted.json;
      expect(cellOfTaskId(taskId)).not.toBe(HOME_CELL);
      const got = await world.call("echo", `/work/get?task_id=${taskId}&wait=50`, { token, agent });
      expect(got.text).toBe(`one ${text}`);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

it("asks home nothing for a task in a cell, once the caller is known", async () => {
  await lifecycles(WARM_UP);
  const asked = new Map<string, number>();
  const { query } = pg.Client.prototype;
  const name = new URL(home).pathname.slice(1);
  using _spy = vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (
    this: pg.Client & { readonly database?: string },
    ...args: unknown[]
  ) {
    if (this.database === name) {
      const [config] = args as [string | { readonly name?: string; readonly text: string }];
      const text = typeof config === "string" ? config : (config.name ?? config.text);
      const what = text.replaceAll(/\s+/g, " ").trim().slice(0, 200);
      asked.set(what, (asked.get(what) ?? 0) + 1);
    }
    return Reflect.apply(query, this, args);
  } as typeof query);
  const beganMs = performance.now();
  await lifecycles(LIFECYCLES);
  const seconds = (performance.now() - beganMs) / 1_000;
  const most = seconds * MAX_PER_SECOND + MAX_AT_ONCE;
  const often = [...asked].filter(([what, times]) => what !== HINTS && times > most);
  expect(often).toEqual([]);
  expect(asked.get(HINTS) ?? 0).toBeLessThanOrEqual(seconds * 100);
}, 600_000);
