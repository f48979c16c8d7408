import { expect, test } from "vitest";
import { newSessionName } from "../../../src/storage/postgres/node-session.ts";
import { PostgresNotifier } from "../../../src/storage/postgres/notifier.ts";
import type { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { LEASE, NOW_MS, openLease, startTask, TTL_MS } from "../fixtures.ts";
import { ask, databaseUrl, newSchema, notify, openPostgres } from "./databases.ts";

/** When a lease expires whose node has no session. */
const EARLY_MS = NOW_MS + 8_000;

/** A storage with the session of its node. */
class Node implements AsyncDisposable {
  readonly storage: PostgresStorage;
  readonly #notifier: PostgresNotifier;
  readonly #name: string;

  static async open(schema: string, minAgeMs?: number): Promise<Node> {
    const name = newSessionName();
    const session = { name, ...(minAgeMs !== undefined && { minAgeMs }) };
    const storage = await openPostgres({ schema, leaseClock: "caller", session });
    const notifier = new PostgresNotifier(await databaseUrl(), { schema, notify, session: name });
    const node = new Node(storage, notifier, name);
    notifier.start();
    await expect.poll(() => notifier.isUp).toBe(true);
    return node;
  }

  private constructor(storage: PostgresStorage, notifier: PostgresNotifier, name: string) {
    this.storage = storage;
    this.#notifier = notifier;
    this.#name = name;
  }

  /** As when its process is killed. */
  async endSession(): Promise<void> {
    await this.#notifier[Symbol.asyncDispose]();
    await expect.poll(() => this.#holders()).toBe(0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#notifier[Symbol.asyncDispose]();
    await this.storage[Symbol.asyncDispose]();
  }

  async #holders(): Promise<unknown> {
    const [row] = await ask(
      await databaseUrl(),
      `SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory'
       AND objid::bigint = hashtextextended($1, 0) & 4294967295`,
      this.#name,
    );
    return row?.n;
  }
}

async function withTwo(
  run: (victim: Node, witness: Node, schema: string) => Promise<void>,
  { minAgeMs = 0 } = {},
): Promise<void> {
  const schema = newSchema();
  await using victim = await Node.open(schema);
  await using witness = await Node.open(schema, minAgeMs);
  await run(victim, witness, schema);
}

/** Whether another node finds leases expired, and which tasks it rescues. */
async function judge(storage: Storage, nowMs: number) {
  const { expiredLeases } = await storage.survey({ nowMs, deploymentIds: [] });
  const rescued = await storage.rescueExpired({ nowMs });
  return { expiredLeases, rescued: rescued.map(({ taskId }) => taskId) };
}

const NOTHING = { expiredLeases: false, rescued: [] };
const TASK = { expiredLeases: true, rescued: ["a"] };

test("a lease expires 8 s after its last renewal when its node's session has ended", () =>
  withTwo(async (victim, { storage }) => {
    await startTask(victim.storage, "a");
    await victim.endSession();
    expect(await judge(storage, EARLY_MS - 1)).toEqual(NOTHING);
    expect(await judge(storage, EARLY_MS)).toEqual(TASK);
    expect(await judge(storage, EARLY_MS)).toEqual(NOTHING);
  }));

test("a lease lasts whole while its node has a session, however late it is renewed", () =>
  withTwo(async (victim, { storage }) => {
    await startTask(victim.storage, "a");
    expect(await judge(storage, NOW_MS + TTL_MS - 1)).toEqual(NOTHING);
    expect(await judge(storage, NOW_MS + TTL_MS)).toEqual(TASK);
  }));

test("a node that lost its session and lives keeps its leases by renewing them", () =>
  withTwo(async (victim, { storage }) => {
    await startTask(victim.storage, "a");
    await victim.endSession();
    const renewal = { leaseIds: [LEASE], nowMs: NOW_MS + 5_000, ttlMs: TTL_MS };
    expect(await victim.storage.renewLeases(renewal)).toEqual([LEASE]);
    expect(await judge(storage, EARLY_MS)).toEqual(NOTHING);
  }));

test("a lease of a node that never had a session, such as an older one, lasts whole", () =>
  withTwo(async (_, { storage }, schema) => {
    await using older = await openPostgres({ schema, leaseClock: "caller" });
    await startTask(older, "a");
    expect(await judge(storage, NOW_MS + TTL_MS - 1)).toEqual(NOTHING);
  }));

test("a lease that was opened before its node had a session lasts whole", () =>
  withTwo(async (victim, { storage }) => {
    await victim.endSession();
    await openLease(victim.storage);
    expect(await judge(storage, NOW_MS + TTL_MS - 1)).toEqual(NOTHING);
  }));

test("a node judges nobody by their sessions until its own is old enough, as after a failover", () =>
  withTwo(
    async (victim, { storage }) => {
      await startTask(victim.storage, "a");
      await victim.endSession();
      expect(await judge(storage, NOW_MS + TTL_MS - 1)).toEqual(NOTHING);
      expect(await judge(storage, NOW_MS + TTL_MS)).toEqual(TASK);
    },
    { minAgeMs: 60_000 },
  ));
