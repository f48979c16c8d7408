/** The limits by key of three nodes on one Postgres, of which one is killed, by the record of the database. */
import { expect, it } from "vitest";
import { createTesseraClient } from "../../../src/client/index.ts";
import { ask } from "../../storage/postgres/databases.ts";
import { Program } from "../cli/program.ts";
import { newPostgres } from "../start/databases.ts";
import { artifact, call, World } from "./world.ts";

const KEYS = ["ada", "bob", "cy"];
const TASKS_OF_KEY = 24;
const CONCURRENCY = 2;
const RATE = { count: 6, periodMs: 1_000 };

const LIMITED = {
  "forMs: z.int().default(0) }, output: z.string() }":
    'forMs: z.int().default(0) }, output: z.string(), concurrency: 8, concurrencyPerKey: 2, ratePerKey: "6/s" }',
};

/**
 * Each start of a task, and each end or return, in an order that commits keep: who starts one has seen the
 * commits of those that have ended, so that no sum is ever more than what ran.
 */
const RECORD = `
  CREATE TABLE public.moves (place bigserial, key text, change integer, started_at_ms bigint, lease_id text);
  CREATE FUNCTION public.record_move() RETURNS trigger LANGUAGE plpgsql AS $$
  DECLARE
    ran boolean := TG_OP <> 'INSERT' AND OLD.status = 2;
    runs boolean := TG_OP <> 'DELETE' AND NEW.status = 2;
  BEGIN
    IF ran AND NOT runs THEN
      INSERT INTO public.moves (key, change) VALUES (OLD.key, -1);
    ELSIF runs AND NOT ran THEN
      INSERT INTO public.moves (key, change, started_at_ms, lease_id)
      VALUES (NEW.key, 1, NEW.started_at_ms, NEW.lease_id);
    END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER record_move AFTER INSERT OR UPDATE OR DELETE ON tessera.live_tasks
    FOR EACH ROW EXECUTE FUNCTION public.record_move()`;

it("hold over three nodes, of which one is killed, in any window and at any moment", async () => {
  const database = await newPostgres();
  await using world = await World.start({ database });
  const settings = { minWorkers: 3, maxWorkers: 3 };
  await world.deploy("echo", await artifact("echo", LIMITED), { settings });
  const { value: token } = await world.platform.createToken(world.cookie);
  await world.platform[Symbol.asyncDispose]();
  await ask(database, RECORD);
  const nodes = await Promise.all(
    KEYS.map(async () => {
      const args = ["start", "--port", "0", "--data", world.folder.data];
      const env = { DATABASE_URL: database };
      const program = new Program(args, { cwd: world.folder.path, env, limitMs: 240_000 });
      const [, port = ""] = await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
      return { program, started: { ...world.platform.started, port: Number(port) } };
    }),
  );
  await using programs = new AsyncDisposableStack();
  for (const { program } of nodes) {
    programs.use(program);
  }
  const [first, killed] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
  const client = createTesseraClient({ url: `http://localhost:${first.started.port}`, token });
  await expect
    .poll(() => client.deployments.getDeployment({ deployment: "echo" }), { timeout: 60_000 })
    .toMatchObject({ nodes: 3, workers: 3 });

  const submits = KEYS.flatMap((key) =>
    Array.from({ length: TASKS_OF_KEY }, (_, number) => ({ key, number })),
  );
  for (const { key, number } of submits) {
    const node = nodes[number % nodes.length] as (typeof nodes)[0];
    const body = { text: key, forMs: 20 + (number % 5) * 40 };
    const answer = await call({ started: node.started }, "echo", `/work/submit?key=${key}`, {
      body,
    });
    expect(answer.status).toBe(202);
  }
  const ended = async (): Promise<number> => {
    const sql = "SELECT count(*)::integer AS count FROM tessera.finished_tasks WHERE status = 3";
    return Number((await ask(database, sql))[0]?.count);
  };
  await expect.poll(ended, { timeout: 60_000 }).toBeGreaterThanOrEqual(submits.length / 3);
  await killed.program.stop("SIGKILL");
  await expect.poll(ended, { timeout: 90_000 }).toBe(submits.length);

  const moves = await ask(database, "SELECT * FROM public.moves ORDER BY place");
  for (const key of KEYS) {
    const own = moves.filter((move) => move.key === key);
    let running = 0;
    const counts = own.map(({ change }) => (running += Number(change)));
    expect(Math.max(...counts)).toBe(CONCURRENCY);
    expect(counts.at(-1)).toBe(0);
    const starts = own
      .filter(({ change }) => change === 1)
      .map((move) => Number(move.started_at_ms));
    expect(starts.length).toBeGreaterThanOrEqual(TASKS_OF_KEY);
    expect(starts).toEqual(starts.toSorted((one, other) => one - other));
    // Each start and the one that is so many later do not fit into a window.
    const spansMs = starts
      .slice(RATE.count)
      .map((startedAtMs, at) => startedAtMs - (starts[at] ?? 0));
    expect(Math.min(...spansMs)).toBeGreaterThan(RATE.periodMs);
  }
  // All three have started some.
  const leases = new Set(moves.flatMap(({ lease_id: lease }) => (lease === null ? [] : [lease])));
  expect(leases.size).toBeGreaterThanOrEqual(nodes.length);
}, 240_000);
