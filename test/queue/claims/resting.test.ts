import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Slot } from "../../../src/pool/pool.ts";
import type { ByKeyManifest, EndpointManifest } from "../../../src/protocol/manifest.ts";
import { Backlog } from "../../../src/queue/claims/backlog.ts";
import { RestingKeys } from "../../../src/queue/claims/resting.ts";
import type { NewTask, Storage } from "../../../src/storage/storage.ts";
import {
  attempt,
  DEPLOYMENT,
  ENDPOINT,
  endAttempt,
  LEASE,
  newTask,
  submit,
  success,
} from "../../storage/fixtures.ts";
import { postgresDatabase } from "../../storage/postgres/databases.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";
import { LOG } from "../queues.ts";

const KEYS = 1_100;
const DATABASES = [
  [
    "SQLite",
    async () => ({ open: () => openSqlite(":memory:"), async [Symbol.asyncDispose]() {} }),
  ],
  ["Postgres", postgresDatabase],
] as const;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
  vi.setSystemTime(1_750_000_000_000);
});
afterEach(() => void vi.useRealTimers());

/** Claims for an endpoint that has as many slots free as anybody may want. */
class Claims implements Disposable {
  readonly backlog: Backlog;
  /** The tasks that were started. */
  readonly started: string[] = [];
  /** How often the storage was asked. */
  asked = 0;
  /** The keys that claims have named. */
  readonly named = new Set<string>();
  readonly #storage: Storage;

  constructor(storage: Storage, byKey: ByKeyManifest) {
    this.#storage = storage;
    const reserveAll = (_: EndpointManifest, limit: number) =>
      Array.from({ length: limit }, () => ({ workerId: LEASE, endpoint: ENDPOINT }) as Slot);
    const options = { deploymentId: DEPLOYMENT, storage, log: LOG, now: Date.now };
    this.backlog = new Backlog({ ...options, pool: { reserveAll } }, () => {});
    this.backlog.serve([{ name: ENDPOINT, kind: "task", byKey } as EndpointManifest]);
  }

  /** Claims until there is nothing to claim now. */
  async settled(): Promise<void> {
    for (let more = true; more || !this.backlog.isEmpty; ) {
      const reserved = this.backlog.reserve();
      if (reserved.claims.length === 0) {
        return;
      }
      const { claims } = reserved;
      const asked = { deploymentId: DEPLOYMENT, nowMs: Date.now(), claims };
      const claimed = await this.#storage.claimTasks(asked);
      this.asked += 1;
      for (const key of claims.flatMap(({ byKey }) => byKey?.keys ?? [])) {
        this.named.add(key);
      }
      this.started.push(...claimed.tasks.map(({ task }) => task.taskId));
      this.backlog.assign(claimed.tasks, reserved);
      more = this.backlog.answered(reserved, claimed);
    }
  }

  /** Lets time pass, in steps that are shorter than the pause between two parts. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 50) {
      vi.advanceTimersByTime(50);
      await this.settled();
    }
  }

  [Symbol.dispose](): void {
    this.backlog[Symbol.dispose]();
  }
}

const nameOf = (number: number) => `k${String(number).padStart(4, "0")}`;

/** Two tasks of each of many keys, of which the first runs, and all of them were looked at. */
async function resting(storage: Storage, byKey: ByKeyManifest): Promise<Claims> {
  const nowMs = Date.now();
  await storage.openLease({ leaseId: LEASE, owner: "test", nowMs, ttlMs: 600_000 });
  const tasks = Array.from({ length: KEYS }, (_, number) => nameOf(number)).flatMap((key) => [
    own(`${key}-0`, key),
    own(`${key}-1`, key),
  ]);
  for (let at = 0; at < tasks.length; at += 1_000) {
    await submit(storage, ...tasks.slice(at, at + 1_000));
  }
  const claims = new Claims(storage, byKey);
  await claims.settled();
  expect(claims.started.toSorted()).toEqual(tasks.map(({ taskId }) => taskId).filter(isFirst));
  await claims.pass(2_000);
  claims.started.length = 0;
  claims.asked = 0;
  return claims;
}

function own(taskId: string, key: string): NewTask {
  const nowMs = Date.now();
  return newTask(taskId, { key, createdAtMs: nowMs, runAtMs: nowMs, queueLimit: 10_000 });
}

const isFirst = (taskId: string) => taskId.endsWith("-0");

it.each(DATABASES)(
  "ask nothing while all keys rest, and start the tasks of a key that is told of at once, on %s",
  async (_, newDatabase) => {
    await using database = await newDatabase();
    await using storage = await database.open();
    using claims = await resting(storage, { concurrency: 1 });
    await claims.pass(5_000);
    expect(claims.asked).toBe(0);

    await endAttempt(storage, attempt(`${nameOf(700)}-0`), success(1), Date.now());
    claims.backlog.came(ENDPOINT, [nameOf(700)]);
    const [fresh] = [own("fresh", "fresh")];
    await submit(storage, fresh);
    claims.backlog.add([fresh]);
    await claims.settled();
    expect(claims.started).toEqual([`${nameOf(700)}-1`, "fresh"]);
    expect(claims.asked).toBe(1);

    // A delayed one is found when it is due.
    const delayed = { ...own("delayed", "other"), runAtMs: Date.now() + 3_000 };
    await submit(storage, delayed);
    claims.backlog.add([delayed]);
    await claims.pass(3_100);
    expect(claims.started.at(-1)).toBe("delayed");
    expect(claims.asked).toBeLessThan(4);
  },
);

it.each(DATABASES)(
  "look at all keys once, in parts, when nobody says which one may start, on %s",
  async (_, newDatabase) => {
    await using database = await newDatabase();
    await using storage = await database.open();
    using claims = await resting(storage, { concurrency: 1 });
    for (const number of [10, 600, KEYS - 1]) {
      await endAttempt(storage, attempt(`${nameOf(number)}-0`), success(1), Date.now());
    }
    claims.backlog.came(ENDPOINT);
    await claims.settled();
    await claims.pass(1_000);
    const expected = [10, 600, KEYS - 1].map((number) => `${nameOf(number)}-1`);
    expect(claims.started.toSorted()).toEqual(expected);
    const { asked } = claims;
    await claims.pass(5_000);
    expect(claims.asked).toBe(asked);
    // Maintenance has one part looked at, and that finds what no hint has told.
    await endAttempt(storage, attempt(`${nameOf(20)}-0`), success(1), Date.now());
    for (let round = 0; round < 2; round++) {
      claims.backlog.found(ENDPOINT);
      claims.backlog.came(ENDPOINT, []);
      await claims.settled();
    }
    expect(claims.started).toContain(`${nameOf(20)}-1`);
  },
);

it.each(DATABASES)(
  "start a task when the window of its key opens, and ask nothing before, on %s",
  async (_, newDatabase) => {
    await using database = await newDatabase();
    await using storage = await database.open();
    const rate = { count: 1, periodMs: 60_000 };
    using claims = await resting(storage, { rate });
    await claims.pass(57_000);
    expect([claims.asked, claims.started]).toEqual([0, []]);
    await claims.pass(1_100);
    expect(claims.started.toSorted()).toEqual(
      Array.from({ length: KEYS }, (_, number) => `${nameOf(number)}-1`),
    );
  },
);

it.each(DATABASES)(
  "look at the empty key when maintenance has found tasks, which may have been stored without a key, on %s",
  async (_, newDatabase) => {
    await using database = await newDatabase();
    await using storage = await database.open();
    using claims = await resting(storage, { concurrency: 1 });
    await submit(storage, { ...own("unkeyed", ""), key: undefined });
    claims.backlog.found(ENDPOINT);
    claims.backlog.came(ENDPOINT, []);
    await claims.settled();
    expect(claims.named).toContain("");
    expect(claims.started).toEqual(["unkeyed"]);
  },
);

it("give those their turn that found no slot, before those that had one", () => {
  const keys = new RestingKeys();
  keys.tell(["a", "b", "c"]);
  const answers: unknown[] = [];
  for (let claim = 0; claim < 4; claim++) {
    const look = keys.next();
    answers.push(look);
    keys.answered({
      look,
      isFull: true,
      cut: undefined,
      started: look.slice(0, 1) as string[],
      due: [],
    });
  }
  expect(answers).toEqual([
    ["a", "b", "c"],
    ["b", "c", "a"],
    ["c", "a", "b"],
    ["a", "b", "c"],
  ]);
});

it("go on with a part that had more tasks to start than slots, also when all were looked at", () => {
  const keys = new RestingKeys();
  const part = { look: "part", started: ["a"], due: [] } as const;
  for (let round = 0; round < 2; round++) {
    keys.lookOn();
    expect(keys.next()).toBe("part");
    keys.answered({ ...part, isFull: false, cut: "around", started: [] });
  }
  expect(keys.isLookDue).toBe(false);
  keys.lookOn();
  expect(keys.next()).toBe("part");
  keys.answered({ ...part, isFull: true, cut: undefined });
  expect([keys.next(), keys.next()]).toEqual([["a"], "part"]);
});
