import pg from "pg";
import { expect, it } from "vitest";
import { LEASE_DURATION_MS } from "../../../src/queue/maintenance/leases.ts";
import type { MaintainedQueue } from "../../../src/queue/maintenance/maintenance.ts";
import { Maintenance } from "../../../src/queue/maintenance/maintenance.ts";
import type { Hint, Notifier } from "../../../src/storage/notifier.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import type { Task } from "../../../src/tasks/task.ts";
import { newTask, openLease, submit } from "../../storage/fixtures.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "../../storage/postgres/databases.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

const LOG = { debug() {}, info() {}, warn() {}, error() {} };

/** A storage that notes what it is asked, and the names of that so far. */
function noted(storage: Storage) {
  const asked: string[] = [];
  const glass = new Proxy(storage, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function" || typeof name === "symbol") {
        return member;
      }
      return (...parameters: unknown[]): unknown => {
        asked.push(name);
        return Reflect.apply(member, target, parameters);
      };
    },
  });
  return { storage: glass, asked };
}

/** A deployment that notes what it is told. */
class Visitor implements MaintainedQueue {
  readonly told: string[] = [];
  onRescued = ({ taskId, status }: Task): void =>
    void this.told.push(`rescued ${taskId} ${status}`);
  onExpired = ({ taskId }: Task): void => void this.told.push(`expired ${taskId}`);
  onDue = (endpoint: string): void => void this.told.push(`due ${endpoint}`);
  onSuspects = (endpoint: string): void => void this.told.push(`suspects ${endpoint}`);
  onSchedule = (atMs: number): void => void this.told.push(`schedule ${atMs}`);
  awaited = (): readonly string[] => this.waits;
  onMissed = (taskId: string): void => void this.told.push(`missed ${taskId}`);
  onStorage = (answers: boolean): void => void this.told.push(answers ? "answers" : "away");
  leaseIds = (): string[] => [...this.leases];
  abort = (taskId: string): void => void this.told.push(`abort ${taskId}`);
  leases: string[] = [];
  waits: string[] = [];
}

/** The same storage, of which these methods do something else. */
function changed(storage: Storage, methods: Partial<Storage>): Storage {
  const properties = Object.entries(methods).map(([name, value]) => [
    name,
    { value, configurable: true },
  ]);
  return Object.create(storage, Object.fromEntries(properties)) as Storage;
}

/** A database that answers nothing in time. */
const slow = (): Promise<never> => Promise.reject(new Error("canceling statement"));

function roundsOver(storage: Storage, hints?: Hint[]): Maintenance {
  const notifier = hints && {
    isUp: true,
    start() {},
    publish: (hint: Hint) => void hints.push(hint),
    subscribe: () => () => {},
    async [Symbol.asyncDispose]() {},
  };
  return new Maintenance({ storage, notifier, log: LOG, now: Date.now });
}

it("an idle node asks two questions per round, however many deployments and workers it has", async () => {
  await using opened = await openSqlite(":memory:");
  const { storage, asked } = noted(opened);
  await using maintenance = roundsOver(storage);
  for (let number = 0; number < 10; number++) {
    maintenance.register(`deployment-${number}`, new Visitor());
    await maintenance.leases.open(`worker-${number}`, () => {});
  }
  asked.length = 0;
  for (let round = 0; round < 3; round++) {
    await maintenance.look();
  }
  expect(asked).toEqual(Array(3).fill(["renewLeases", "survey"]).flat());
});

it("asks one where it has no worker", async () => {
  await using opened = await openSqlite(":memory:");
  const { storage, asked } = noted(opened);
  await using maintenance = roundsOver(storage);
  await maintenance.look();
  expect(asked).toEqual(["survey"]);
});

it("tells the deployment that a task belongs to what becomes of it", async () => {
  await using storage = await openSqlite(":memory:");
  await using maintenance = roundsOver(storage);
  const [one, other] = [new Visitor(), new Visitor()];
  maintenance.register("deployment-1", one);
  maintenance.register("deployment-2", other);
  const nowMs = Date.now();
  await openLease(storage, "gone", nowMs - 100_000);
  await submit(
    storage,
    newTask("a", { createdAtMs: nowMs, runAtMs: nowMs, leaseId: "gone" }),
    newTask("b", { startByMs: nowMs - 1 }),
    newTask("c", { deploymentId: "deployment-2" }),
  );
  await maintenance.look();
  await maintenance.expirer.look();
  await expect
    .poll(() => one.told.toSorted())
    .toEqual(["answers", "expired b", "rescued a queued"]);
  expect(other.told.sort()).toEqual(["answers", "due work"]);
});

it("tells other nodes of what it rescued for a deployment that does not run here", async () => {
  await using storage = await openSqlite(":memory:");
  const hints: Hint[] = [];
  await using maintenance = roundsOver(storage, hints);
  await openLease(storage, "gone", Date.now() - 100_000);
  await submit(storage, newTask("a", { leaseId: "gone" }));
  await maintenance.look();
  await expect
    .poll(() => hints)
    .toEqual([
      { kind: "changed", taskId: "a" },
      { kind: "queued", deploymentId: "deployment-1", endpoint: "work" },
    ]);
});

it("tells whose lease was lost, and nobody whose lease was closed", async () => {
  await using storage = await openSqlite(":memory:");
  await using maintenance = roundsOver(storage);
  const lost: string[] = [];
  for (const id of ["kept", "lost", "closed"]) {
    await maintenance.leases.open(id, () => lost.push(id));
  }
  await storage.closeLease({ leaseId: "lost", nowMs: Date.now() });
  maintenance.leases.close("closed");
  await maintenance.leases.closed();
  await maintenance.look();
  expect(lost).toEqual(["lost"]);
  expect(maintenance.leases.held).toEqual(["kept"]);
});

it("says that the storage is away, and that it answers again", async () => {
  await using storage = await openSqlite(":memory:");
  let away = true;
  const unreliable = changed(storage, {
    survey: (parameters) => (away ? slow() : storage.survey(parameters)),
  });
  await using maintenance = roundsOver(unreliable);
  const visitor = new Visitor();
  maintenance.register("deployment-1", visitor);
  await maintenance.look();
  away = false;
  await maintenance.look();
  expect(visitor.told).toEqual(["away", "answers"]);
});

it("keeps its leases and stays ready while what waits cannot be looked for", async () => {
  await using storage = await openSqlite(":memory:");
  await using maintenance = roundsOver(changed(storage, { survey: slow }));
  const visitor = new Visitor();
  maintenance.register("deployment-1", visitor);
  await maintenance.leases.open("worker", () => {});
  const beforeMs = Date.now();
  await maintenance.look();
  expect(visitor.told).toEqual(["answers"]);
  const survey = { nowMs: beforeMs + LEASE_DURATION_MS - 1, deploymentIds: [] };
  expect(await storage.survey(survey)).toMatchObject({ expiredLeases: false });
});

it("so it does on Postgres, where the survey waits longer than a statement may", async () => {
  const schema = newSchema();
  await using storage = await openPostgres({ schema, timeoutMs: 500 });
  await using maintenance = roundsOver(storage);
  await maintenance.leases.open("worker", () => {});
  const url = await databaseUrl();
  const expiry = async () => (await ask(url, `SELECT expires_at_ms FROM ${schema}.leases`))[0];
  const before = await expiry();
  const locker = new pg.Client(url);
  await locker.connect();
  try {
    await locker.query(`BEGIN; LOCK TABLE ${schema}.live_tasks IN ACCESS EXCLUSIVE MODE`);
    await maintenance.look();
  } finally {
    await locker.end();
  }
  expect(Number((await expiry())?.expires_at_ms)).toBeGreaterThan(Number(before?.expires_at_ms));
});

it("what cannot be rescued or aborted keeps nobody from what is due, nor makes a node unready", async () => {
  await using storage = await openSqlite(":memory:");
  const hanging = new Promise<never>(() => {});
  const stubborn = changed(storage, { rescueExpired: () => hanging, listAborts: slow });
  const maintenance = roundsOver(stubborn, []);
  const visitor = new Visitor();
  visitor.leases = ["worker"];
  visitor.waits = ["waited-for"];
  maintenance.register("deployment-1", visitor);
  await maintenance.leases.open("worker", () => {});
  await openLease(storage, "gone", Date.now() - 100_000);
  await submit(storage, newTask("a"));
  await maintenance.look();
  await maintenance.look();
  await expect.poll(() => visitor.told.includes("missed waited-for")).toBe(true);
  const told = visitor.told.filter((each) => !each.startsWith("missed"));
  expect(told).toEqual(["answers", "due work", "answers", "due work"]);
});

it("looks for aborts before all who wait look for themselves, and these a few at a time", async () => {
  await using storage = await openSqlite(":memory:");
  const visitor = new Visitor();
  visitor.leases = ["worker"];
  visitor.waits = Array.from({ length: 250 }, (_, number) => `t${number}`);
  const aborts = [{ deploymentId: "deployment-1", taskId: "a" }];
  const listAborts = () => Promise.resolve(aborts as never);
  await using maintenance = roundsOver(changed(storage, { listAborts }), []);
  maintenance.register("deployment-1", visitor);
  const perTurn: number[] = [];
  const turn = setInterval(() => perTurn.push(visitor.told.length), 1);
  await maintenance.look();
  await expect.poll(() => visitor.told.length, { interval: 5 }).toBe(252);
  clearInterval(turn);
  expect(visitor.told.slice(0, 3)).toEqual(["answers", "abort a", "missed t0"]);
  expect(perTurn).toContain(102);
  expect(perTurn).toContain(202);
});

it("a hint that comes during a round is followed by another one", async () => {
  await using opened = await openSqlite(":memory:");
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const gated = changed(opened, {
    async survey(parameters) {
      begun.resolve();
      await gate.promise;
      return opened.survey(parameters);
    },
  });
  const { storage, asked } = noted(gated);
  let hear: (hint: Hint) => void = () => {};
  const notifier: Notifier = {
    isUp: true,
    start() {},
    publish() {},
    subscribe: (listener) => {
      hear = listener;
      return () => {};
    },
    async [Symbol.asyncDispose]() {},
  };
  await using maintenance = new Maintenance({ storage, notifier, log: LOG, now: Date.now });
  const first = maintenance.look();
  await begun.promise;
  hear({ kind: "look" });
  hear({ kind: "look" });
  gate.resolve();
  await first;
  await expect.poll(() => asked).toEqual(["survey", "survey"]);
});

it("asks every second while hints of other nodes may not arrive", async () => {
  await using opened = await openSqlite(":memory:");
  const { storage, asked } = noted(opened);
  const notifier: Notifier = {
    isUp: false,
    start() {},
    publish() {},
    subscribe: () => () => {},
    async [Symbol.asyncDispose]() {},
  };
  await using maintenance = new Maintenance({ storage, notifier, log: LOG, now: Date.now });
  const waiter = new Visitor();
  waiter.waits = ["awaited"];
  maintenance.register("deployment", waiter);
  await maintenance.start();
  const beganMs = performance.now();
  await expect.poll(() => waiter.told.filter((each) => each === "missed awaited")).toHaveLength(2);
  // Two of the longer intervals, with hints, would be 10 s.
  expect(performance.now() - beganMs).toBeLessThan(4_500);
  expect(asked).toContain("survey");
});
