import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectionConfig } from "../../../src/storage/postgres/connection.ts";
import { PREPARED } from "../../../src/storage/postgres/session.ts";
import { databaseUrl, newSchema, openPostgres } from "./databases.ts";

/** A node of a plan, as EXPLAIN writes it. */
interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly "TID Cond"?: string;
  readonly Plans?: readonly Plan[];
}

/** Tables that grow with what users do. */
const LARGE =
  /^(live_tasks|finished_tasks|deleted_tasks|payload_parts|task_events|task_pieces|idempotency_keys|key_starts|key_times|key_runs)$/;

const schema = newSchema();
let client: pg.Client;

beforeAll(async () => {
  const storage = await openPostgres({ schema });
  await storage[Symbol.asyncDispose]();
  const url = await databaseUrl();
  client = new pg.Client(connectionConfig({ url, schema, connections: 1, timeoutMs: 5_000 }));
  await client.connect();
});

afterAll(() => client.end());

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

/** Reads of a large table that no condition bounds; a primary key bounds by more than its deployment. */
function unbounded(plan: Plan): string[] {
  return nodesOf(plan)
    .filter((node) => LARGE.test(node["Relation Name"] ?? "") && /Scan/.test(node["Node Type"]))
    .filter((node) => {
      const condition = node["Index Cond"] ?? node["TID Cond"] ?? "";
      const primary = node["Index Name"]?.endsWith("_pkey");
      return primary ? !/task_id|\bkey\b/.test(condition) : condition === "";
    })
    .map((node) => `${node["Node Type"]} ${node["Index Name"] ?? node["Relation Name"]}`);
}

// The tables are empty and were never analyzed: plans made on their first day are kept.
test.each([...PREPARED.values()])("$name reads no table from end to end", async ({ text }) => {
  const { rows } = await client.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`);
  const [{ Plan: plan }] = rows[0]["QUERY PLAN"];
  expect(unbounded(plan)).toEqual([]);
});
