/** What the accounts and hosting ask Postgres, and how it goes about it: by an index, whatever the table's size. */
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectionConfig } from "../../../src/storage/postgres/connection.ts";
import { READS } from "../../../src/storage/sql/accounts/operations.ts";
import { SINGLE } from "../../../src/storage/sql/hosting/operations.ts";
import { databaseUrl, newSchema, openPostgres } from "../postgres/databases.ts";

interface Plan {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Index Name"?: string;
  readonly "Index Cond"?: string;
  readonly Plans?: readonly Plan[];
}

const page = { limit: 50, after: "x" };
const key = { organizationId: "o", name: "n", tokenId: "t", userId: "u", viewerId: "u" };

const hosted = { organizationId: "o", deploymentId: "d" };

/** The statements that are asked once per request, page or second; each operation asks just one. */
const STATEMENTS = {
  findSession: READS.findSession({ digest: "d", nowMs: 1 }),
  findCredential: READS.findCredential({ digests: ["d", "e"], nowMs: 1 }),
  findSessionOf: READS.findSessionOf({ sessionId: "s", nowMs: 1 }),
  findCredentialOf: READS.findCredentialOf(key),
  listChanges: READS.listChanges({ afterSequence: 1, limit: 100 }),
  findUser: READS.findUser({ email: "e" }),
  findIdentity: READS.findIdentity({ issuer: "i", subject: "s" }),
  findInvitation: READS.findInvitation({ email: "e", nowMs: 1 }),
  listInvitations: READS.listInvitations({ ...key, nowMs: 1, limit: 50 }),
  listMembers: READS.listMembers({ ...key, ...page }),
  findDeployment: READS.findDeployment({ organization: "o", name: "n" }),
  listDeployments: READS.listDeployments({ ...key, ...page }),
  getToken: READS.getToken(key),
  listTokens: READS.listTokens({ ...key, ...page }),
  getSealed: READS.getSealed(key),
  listSealed: READS.listSealed(page),
  listAuditEvents: READS.listAuditEvents({ ...key, ...page }),
  findDeviceLogin: READS.findDeviceLogin({ userCodeDigest: "d", nowMs: 1 }),
  getHosted: SINGLE.getHosted({ deploymentId: "d" }),
  listHosted: SINGLE.listHosted(page),
  listRevisions: SINGLE.listRevisions({ ...hosted, limit: 50, after: "5" }),
  getIndex: SINGLE.getIndex({ ...key, digest: "d" }),
  listArtifactFiles: SINGLE.listArtifactFiles({ ...key, digest: "d" }),
  getManifest: SINGLE.getManifest(hosted),
  getSecrets: SINGLE.getSecrets(hosted),
  getRevisionSecrets: SINGLE.getRevisionSecrets({ ...hosted, revision: 1 }),
  listSealedSecrets: SINGLE.listSealedSecrets({ limit: 50, after: "o/d/n" }),
  listNodes: SINGLE.listNodes({ nowMs: 1 }),
};

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

/** Tables whose rows an organization may have many of: their keys take more than the organization. */
const MANY = /^(?:memberships|deployment|token|revisions|artifact)/;

/** A read that no condition bounds, described. */
function unbounded(node: Plan): string[] {
  const { "Node Type": type, "Relation Name": table = "", "Index Name": index = "" } = node;
  const condition = node["Index Cond"] ?? "";
  // The scan of a bitmap has its condition in the node below.
  if (!/Scan/.test(type) || type === "Bitmap Heap Scan" || table === "counters") {
    return [];
  }
  const beyond = condition.replaceAll("organization_id", "");
  const bounded = MANY.test(index) ? /\w\)? \(?(?:=|<|>)/.test(beyond) : condition !== "";
  return bounded ? [] : [`${type} ${table} ${index} ${condition}`];
}

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
}

// The tables are empty and were never analyzed: plans made on their first day are kept.
test.each(Object.entries(STATEMENTS))("%s reads no table from end to end", async (_, operation) => {
  const step = operation.next([]);
  if (step.done) {
    throw new Error("it asks nothing");
  }
  let number = 0;
  const text = step.value.sql.replace(/\?/g, () => `$${++number}`);
  const { rows } = await client.query(`EXPLAIN (GENERIC_PLAN, FORMAT JSON) ${text}`);
  const [{ Plan: plan }] = rows[0]["QUERY PLAN"];
  expect(nodesOf(plan).flatMap(unbounded)).toEqual([]);
});
