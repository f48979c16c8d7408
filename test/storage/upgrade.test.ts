/** Databases of every released schema, upgraded by this version of the program. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deploymentSecretContext, loadKeys, sealingContext } from "../../src/auth/keys.ts";
import { verifyPassword } from "../../src/auth/passwords.ts";
import type { Payload } from "../../src/protocol/messages.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { fixtureNames, readFixture } from "./released/fixture.ts";
import { type Restored, restorePostgres, restoreSqlite } from "./released/restored.ts";

const DAY_MS = 86_400_000;

const FIXTURES = [
  ...fixtureNames("sqlite").map((name) => [name, restoreSqlite] as const),
  ...fixtureNames("postgres").map((name) => [name, restorePostgres] as const),
];

/** The fixtures of platforms, which have more than tasks. */
const PLATFORMS = FIXTURES.filter(([name]) => readFixture(name).stored.keys !== undefined);

interface Opened extends AsyncDisposable {
  readonly restored: Restored;
  readonly storage: Storage;
}

/** Restores a fixture, and upgrades it by opening it. */
async function open(
  name: string,
  restore: (name: string) => Restored | Promise<Restored>,
): Promise<Opened> {
  const stack = new AsyncDisposableStack();
  const restored = stack.use(await restore(name));
  const storage = stack.use(await restored.open());
  return { restored, storage, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const newShapes = new Map<string, Promise<string[]>>();

/** The shape of a database that this version has made. */
function newShape({ kind, newShape }: Restored): Promise<string[]> {
  const known = newShapes.get(kind) ?? newShape();
  newShapes.set(kind, known);
  return known;
}

/** What a task was given, by its kind. */
const TEXTS: Record<string, string> = {
  succeeded: "hello",
  failed: "fail",
  long: "0123456789".repeat(1_000),
  file: "All work and no play. ",
  running: "hold",
  queued: "later",
  cancelled: "never",
  scheduled: "much later",
};

async function bytesOf({ blobs }: Restored, payload: Payload | undefined): Promise<Buffer> {
  const [file] = payload?.files ?? [];
  if (file === undefined) {
    return Buffer.from(payload?.json ?? "");
  }
  if ("data" in file) {
    return Buffer.from(file.data);
  }
  const chunks: Uint8Array[] = [];
  for await (const chunk of blobs.read(file.blob.blobId)) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The one deployment that the fixture's tasks belong to. */
async function deploymentOf(restored: Restored): Promise<string> {
  const rows = await restored.ask("SELECT DISTINCT deployment_id FROM tasks");
  expect(rows).toHaveLength(1);
  return String(rows[0]?.deployment_id);
}

async function keysOf({ ask, fixture }: Restored) {
  const [deployment] = await ask("SELECT organization_id, deployment_id FROM deployments");
  const { keys = "", tokens, account, secret } = fixture.stored;
  if (tokens === undefined || account === undefined || secret === undefined) {
    throw new Error("the fixture is not of a platform");
  }
  return {
    organizationId: String(deployment?.organization_id),
    deploymentId: String(deployment?.deployment_id),
    keys: loadKeys({ env: keys }),
    tokens,
    account,
    secret,
  };
}

/** Takes the queue over as the next node does, and ends all tasks that wait; answers their ids. */
async function finishAll(storage: Storage, deploymentId: string, nowMs: number) {
  await storage.rescueExpired({ nowMs, all: true });
  const leaseId = "upgraded";
  await storage.openLease({ leaseId, owner: "test", nowMs, ttlMs: DAY_MS });
  const claims = [{ endpoint: "echo", leaseId, limit: 9 }];
  const claimed = await storage.claimTasks({ deploymentId, nowMs, claims });
  const result = { json: '"done"', files: [] };
  const ends = claimed.map(({ task: { taskId, attempt } }) => ({
    attempt: { deploymentId, taskId, leaseId, attempt },
    end: { status: "success", result } as const,
  }));
  const ended = await storage.endAttempts({ nowMs, ends });
  expect(ended.map((task) => task?.status)).toEqual(ends.map(() => "success"));
  return claimed.map(({ task }) => task.taskId).sort();
}

describe.each(FIXTURES)("a database as %s", (name, restore) => {
  let opened: Opened;
  beforeAll(async () => {
    opened = await open(name, restore);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  it("has every task with its arguments and its result, and goes on with them", async () => {
    const { restored, storage } = opened;
    const deploymentId = await deploymentOf(restored);
    const { tasks } = restored.fixture.stored;
    for (const [kind, { taskId, endpoint, status, result }] of Object.entries(tasks)) {
      const task = await storage.getTask({ deploymentId, taskId });
      expect(task, kind).toMatchObject({
        endpoint,
        status: status === "in_progress" ? "running" : status,
      });
      const given = await storage.getArguments({ deploymentId, taskId });
      expect(JSON.parse(given?.json ?? ""), kind).toEqual({ text: TEXTS[kind] });
      if (result !== undefined) {
        const stored = await storage.getResult({ deploymentId, taskId });
        const bytes = await bytesOf(restored, stored);
        expect(bytes.equals(Buffer.from(result, "base64")), kind).toBe(true);
      }
    }
    const nowMs = restored.fixture.madeAtMs + 1;
    const finished = await finishAll(storage, deploymentId, nowMs);
    expect(finished).toEqual([tasks.running?.taskId, tasks.queued?.taskId].sort());
  });

  it("keeps the idempotency keys of its tasks", async () => {
    const { restored, storage } = opened;
    const [kept] = await restored.ask("SELECT * FROM idempotency_keys");
    const { taskId } = restored.fixture.stored.tasks.succeeded ?? {};
    const nowMs = restored.fixture.madeAtMs;
    const [again] = await storage.submitTasks({
      tasks: [
        {
          deploymentId: String(kept?.deployment_id),
          taskId: "another",
          endpoint: "echo",
          arguments: { json: "{}", files: [] },
          createdAtMs: nowMs,
          runAtMs: nowMs,
          expiresAtMs: nowMs + DAY_MS,
          retentionMs: DAY_MS,
          priority: 0,
          queueLimit: 1_000,
          idempotency: { key: "once", digest: String(kept?.digest) },
        },
      ],
    });
    expect(again).toMatchObject({ outcome: "replayed", task: { taskId } });
  });

  it("has the tables, columns and indexes of a new one", async () => {
    expect(await opened.restored.shape()).toEqual(await newShape(opened.restored));
  });
});

describe.each(PLATFORMS)("a platform as %s", (name, restore) => {
  let opened: Opened;
  beforeAll(async () => {
    opened = await open(name, restore);
  });
  afterAll(() => opened[Symbol.asyncDispose]());

  it("knows its tokens, and unseals what its keys have sealed", async () => {
    const { restored, storage } = opened;
    const { keys, tokens, organizationId } = await keysOf(restored);
    const { accounts } = storage;
    for (const { tokenId, value } of Object.values(tokens)) {
      const digests = keys.digests(value).map(({ digest }) => digest);
      const nowMs = restored.fixture.madeAtMs;
      expect(await accounts.findCredential({ digests, nowMs })).toMatchObject({ tokenId });
    }
    const { tokenId, value } = tokens.organization;
    const sealed = await accounts.getSealed({ organizationId, tokenId });
    expect(keys.unseal(sealed ?? "", sealingContext(organizationId, tokenId))).toBe(value);
  });

  it("lets its first admin in, whose address counts as verified", async () => {
    const { restored, storage } = opened;
    const { account } = await keysOf(restored);
    const user = await storage.accounts.findUser({ email: account.email });
    expect(user).toMatchObject({ emailVerified: true });
    expect(await verifyPassword(user?.passwordHash, account.password)).toBe(true);
  });

  it("gives its deployment the secrets and the files of its artifact", async () => {
    const { restored, storage } = opened;
    const { keys, secret, organizationId, deploymentId } = await keysOf(restored);
    const deployment = { organizationId, deploymentId };
    const secrets = await storage.hosting.getRevisionSecrets({ ...deployment, revision: 1 });
    expect(secrets).toMatchObject({ given: [{ name: secret.name }], withheld: [] });
    const context = deploymentSecretContext({ ...deployment, name: secret.name });
    expect(keys.unseal(secrets.given[0]?.sealed ?? "", context)).toBe(secret.value);
    const files = await restored.ask("SELECT blob_id, sha256 FROM artifact_files");
    expect(files.length).toBeGreaterThan(0);
    for (const { blob_id, sha256 } of files) {
      const digest = createHash("sha256");
      for await (const chunk of restored.blobs.read(String(blob_id))) {
        digest.update(chunk);
      }
      expect(digest.digest("hex")).toBe(sha256);
    }
  });
});
