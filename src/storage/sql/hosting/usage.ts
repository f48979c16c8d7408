/** Adds, sums up and deletes what was used. What tasks use is in both adapters. */

import { dayOf, KEPT_DAYS } from "../../days.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type {
  UsageKey,
  UsageQuery,
  UsageSum,
  UsedByCalls,
  UsedToken,
} from "../../hosting/usage.ts";
import { type Operation, pieces, placeholders, query, type Value } from "../operation.ts";

/** Rows of usage that one statement writes, and tokens whose names one reads. */
const MAX_ROWS_PER_STATEMENT = 100;

type Given<Name extends "addUsage" | "readUsage" | "pruneUsage"> = Parameters<
  HostingStorage[Name]
>[0];

export function* addUsage({ recorder, sequence, day, rows }: Given<"addUsage">): Operation<void> {
  const fresh = yield* query(
    `INSERT INTO usage_flushes (recorder, sequence, day) VALUES (?, ?, ?)
     ON CONFLICT (recorder) DO UPDATE SET sequence = excluded.sequence, day = excluded.day
       WHERE usage_flushes.sequence < excluded.sequence
     RETURNING sequence`,
    ...[recorder, sequence, day],
  );
  if (fresh.length === 0) {
    return;
  }
  // In one order, so that nodes that flush at a time wait for each other instead of in a circle.
  const sorted = [...rows].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
  for (const piece of pieces(sorted, MAX_ROWS_PER_STATEMENT)) {
    yield* query(
      `INSERT INTO usage (deployment_id, day, endpoint, token_id, calls, run_ms, gpu_ms, bytes_in,
         bytes_out)
       VALUES ${placeholders(piece.length, 9)}
       ON CONFLICT (deployment_id, day, endpoint, token_id) DO UPDATE SET
         calls = usage.calls + excluded.calls, run_ms = usage.run_ms + excluded.run_ms,
         gpu_ms = usage.gpu_ms + excluded.gpu_ms, bytes_in = usage.bytes_in + excluded.bytes_in,
         bytes_out = usage.bytes_out + excluded.bytes_out`,
      ...piece.flatMap((row) => [
        ...[row.deploymentId, row.day, row.endpoint, row.tokenId],
        ...[row.calls, Math.round(row.runMs), row.gpuMs, row.bytesIn, row.bytesOut],
      ]),
    );
  }
  const units = sorted.flatMap((row) =>
    Object.entries(row.units).map(([unit, amount]) => ({ ...row, unit, amount })),
  );
  for (const piece of pieces(units, MAX_ROWS_PER_STATEMENT)) {
    yield* query(
      `INSERT INTO usage_units (deployment_id, day, endpoint, token_id, unit, amount)
       VALUES ${placeholders(piece.length, 6)}
       ON CONFLICT (deployment_id, day, endpoint, token_id, unit)
       DO UPDATE SET amount = usage_units.amount + excluded.amount`,
      ...piece.flatMap(({ deploymentId, day: usedOn, endpoint, tokenId, unit, amount }) => [
        ...[deploymentId, usedOn, endpoint, tokenId, unit, amount],
      ]),
    );
  }
}

function keyOf({ deploymentId, day, endpoint, tokenId }: UsedByCalls): string {
  return JSON.stringify([deploymentId, day, endpoint, tokenId]);
}

/** The columns that sums are told apart by. */
const KEY_COLUMNS: { readonly [key in UsageKey]: readonly string[] } = {
  day: ["day"],
  deployment: ["owned.name"],
  endpoint: ["endpoint"],
  token: ["used.token_id"],
};

/** The names of what an organization has, and of what it had. */
const OWNED = `(SELECT deployment_id, name FROM deployments WHERE organization_id = ?
    UNION ALL
    SELECT id, name FROM usage_names WHERE organization_id = ? AND kind = 'deployment')`;

const SUMS = `sum(calls) AS calls, sum(tasks) AS tasks, sum(run_ms) AS run_ms,
  sum(gpu_ms) AS gpu_ms, sum(bytes_in) AS bytes_in, sum(bytes_out) AS bytes_out`;

interface KeyRow {
  readonly day?: number;
  readonly name?: string;
  readonly endpoint?: string;
  readonly token_id?: string;
}

type SumRow = KeyRow & {
  readonly [sum in "calls" | "tasks" | "run_ms" | "gpu_ms" | "bytes_in" | "bytes_out"]:
    | number
    | string
    | null;
};

export function* readUsage(parameters: UsageQuery): Operation<UsageSum[]> {
  const { organizationId, limit } = parameters;
  const rows = yield* query<SumRow>(...summing(parameters, "usage_now", [], SUMS), limit);
  const reported = yield* query<KeyRow & { unit: string; amount: number }>(
    ...summing(parameters, "usage_units_now", ["unit"], "sum(amount) AS amount"),
    limit * MAX_UNITS_PER_SUM,
  );
  const units = Map.groupBy(reported, rowKey);
  const tokens = yield* tokensOf(organizationId, rows);
  return rows.map((row) => ({
    day: row.day,
    deployment: row.name,
    endpoint: row.endpoint,
    token:
      row.token_id === undefined ? undefined : (tokens.get(row.token_id) ?? nameless(row.token_id)),
    // Postgres sums up whole numbers to more digits than a number has, and so to text.
    calls: Number(row.calls),
    tasks: Number(row.tasks),
    runMs: Number(row.run_ms),
    gpuMs: Number(row.gpu_ms),
    bytesIn: Number(row.bytes_in),
    bytesOut: Number(row.bytes_out),
    units: Object.fromEntries(
      (units.get(rowKey(row)) ?? []).map(({ unit, amount }) => [unit, Number(amount)]),
    ),
  }));
}

/** Units that are listed with one sum; a deployment has fewer. */
const MAX_UNITS_PER_SUM = 64;

function rowKey({ day, name, endpoint, token_id }: KeyRow): string {
  return JSON.stringify([day, name, endpoint, token_id]);
}

/** Where what the platform counts stands, and how much of it is one. */
const MEASURES: ReadonlyMap<string, readonly [column: string, one: number]> = new Map([
  ["calls", ["calls", 1]],
  ["tasks", ["tasks", 1]],
  ["run_seconds", ["run_ms", 1_000]],
  ["gpu_seconds", ["gpu_ms", 1_000]],
  ["bytes_in", ["bytes_in", 1]],
  ["bytes_out", ["bytes_out", 1]],
]);

/** How much was used of one measure: of what the platform counts, or of a unit. */
export function* readAmount(
  asked: Omit<UsageQuery, "by" | "limit">,
  measure: string,
): Operation<number> {
  const all = { ...asked, by: [] };
  const [column, one] = MEASURES.get(measure) ?? ["amount", 1];
  const sum = `sum(${column}) AS amount`;
  const [row] = yield* query<{ amount: number | string | null }>(
    ...(MEASURES.has(measure)
      ? summing(all, "usage_now", [], sum)
      : summing({ ...all, unit: measure }, "usage_units_now", [], sum)),
    1,
  );
  return Number(row?.amount ?? 0) / one;
}

/** A statement that sums up a table, with its values but for the limit. */
function summing(
  {
    organizationId,
    fromDay,
    toDay,
    by,
    deployments,
    tokenIds,
    unit,
  }: Omit<UsageQuery, "limit"> & { readonly unit?: string },
  table: string,
  also: readonly string[],
  sums: string,
): [sql: string, ...values: Value[]] {
  const key = [...by.flatMap((each) => KEY_COLUMNS[each]), ...also].join(", ");
  const ofDeployments =
    deployments.length === 0 ? "" : ` AND owned.name IN ${placeholders(1, deployments.length)}`;
  const ofTokens =
    tokenIds.length === 0 ? "" : ` AND used.token_id IN ${placeholders(1, tokenIds.length)}`;
  return [
    `SELECT ${key === "" ? "" : `${key}, `}${sums}
     FROM ${OWNED} AS owned JOIN ${table} AS used ON used.deployment_id = owned.deployment_id
     WHERE day >= ? AND day < ?${ofDeployments}${ofTokens}${unit === undefined ? "" : " AND unit = ?"}
     ${key === "" ? "HAVING count(*) > 0" : `GROUP BY ${key} ORDER BY ${key}`} LIMIT ?`,
    ...[organizationId, organizationId, fromDay, toDay],
    ...deployments,
    ...tokenIds,
    ...(unit === undefined ? [] : [unit]),
  ];
}

/** The tokens of sums, or of budgets: those that an organization has, and those that it had, of which there may be many more. */
export function* tokensOf(
  organizationId: string,
  sums: readonly Pick<KeyRow, "token_id">[],
): Operation<ReadonlyMap<string, UsedToken>> {
  const ids = new Set(sums.flatMap(({ token_id }) => (token_id ? [token_id] : [])));
  const tokens = new Map<string, UsedToken>();
  for (const piece of pieces([...ids], MAX_ROWS_PER_STATEMENT)) {
    const these = placeholders(1, piece.length);
    const rows = yield* query<{ id: string; name: string; kind: string; user_id: string | null }>(
      `SELECT token_id AS id, name, kind, user_id FROM tokens
       WHERE organization_id = ? AND token_id IN ${these}
       UNION ALL
       SELECT id, name, kind, NULL FROM usage_names
       WHERE organization_id = ? AND kind <> 'deployment' AND id IN ${these}`,
      ...[organizationId, ...piece, organizationId, ...piece],
    );
    for (const { id, name, kind, user_id } of rows) {
      tokens.set(id, { id, name, owner: kind === "personal" ? (user_id ?? "") : "organization" });
    }
  }
  return tokens;
}

/** A token that is not known, or the use without one. */
export function nameless(id: string): UsedToken {
  return { id, name: "", owner: "organization" };
}

export function* pruneUsage({ nowMs, limit }: Given<"pruneUsage">): Operation<number> {
  const day = dayOf(nowMs);
  let deleted = 0;
  for (const [table, key, keptDays] of [
    ["usage", "deployment_id, day, endpoint, token_id", KEPT_DAYS],
    ["usage_units", "deployment_id, day, endpoint, token_id, unit", KEPT_DAYS],
    ["usage_names", "organization_id, id", KEPT_DAYS],
    ["usage_flushes", "recorder", 1],
  ] as const) {
    const gone = yield* query(
      `DELETE FROM ${table} WHERE (${key}) IN (
         SELECT ${key} FROM ${table} WHERE day < ? LIMIT ?) RETURNING day`,
      ...[day - keptDays, limit],
    );
    deleted += gone.length;
  }
  return deleted;
}
