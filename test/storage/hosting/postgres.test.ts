import { expect, test } from "vitest";
import { newSchema, openPostgres, postgresDatabase } from "../postgres/databases.ts";
import { hostingContract } from "./contract.ts";

hostingContract("Postgres", postgresDatabase);

test("nodes whose clocks differ agree on who lives, by the clock of the database", async () => {
  await using storage = await openPostgres({ schema: newSchema() });
  const { hosting } = storage;
  await hosting.beat({ nodeId: "slow", nowMs: 0, ttlMs: 60_000 });
  await hosting.beat({ nodeId: "dead", nowMs: 9e12, ttlMs: -1 });
  const nodes = await hosting.listNodes({ nowMs: 9e12 });
  expect(nodes.map(({ nodeId }) => nodeId)).toEqual(["slow"]);
});
