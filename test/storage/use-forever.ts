/**
 * Submits tasks of two deployments for three tokens and ends them, some after a retry, until it is
 * killed; many at once. Its arguments name the database: a file, or an address and a schema. It
 * writes a line for each end that was acknowledged.
 */
import { PostgresStorage } from "../../src/storage/postgres/storage.ts";
import { SqliteStorage } from "../../src/storage/sqlite/storage.ts";
import { createIdSource } from "../../src/tasks/id.ts";
import { FAILURE, newTask, success } from "./fixtures.ts";

const AT_ONCE = 12;
const DEPLOYMENTS = ["one-id", "two-id"];
const TOKENS = ["token-1", "token-2", undefined];

const [place = "", schema] = process.argv.slice(2);
const storage =
  schema === undefined ? new SqliteStorage(place) : new PostgresStorage(place, { schema });
await storage.start();
const newId = createIdSource();
const leaseId = `lease-${process.pid}`;
await storage.openLease({ leaseId, owner: "test", nowMs: Date.now(), ttlMs: 600_000 });

async function useForever(): Promise<never> {
  for (let round = 0; ; round++) {
    const [taskId, createdAtMs] = [newId(), Date.now()];
    const deploymentId = DEPLOYMENTS[round % 2] ?? "";
    const tokenId = TOKENS[round % 3];
    const times = { createdAtMs, runAtMs: createdAtMs, expiresAtMs: createdAtMs + 1_000_000 };
    const submitted = { ...times, deploymentId, tokenId, leaseId };
    await storage.submitTasks({ tasks: [newTask(taskId, submitted)] });
    const attempt = { deploymentId, taskId, leaseId, attempt: 1 };
    const isRetried = round % 5 === 0;
    const later = { status: "queued", failed: true, failure: FAILURE } as const;
    const end = isRetried ? later : success(round);
    const used = { gpuMs: 1.5, units: { tokens: 1 } };
    const nowMs = createdAtMs + (round % 7) * 1_000;
    await storage.endAttempts({ nowMs, ends: [{ attempt, end, used }] });
    process.stdout.write(`${taskId}\n`);
  }
}

await Promise.all(Array.from({ length: AT_ONCE }, useForever));
