/**
 * What a cell has of home's rows, and how it is kept the same.
 *
 * The statements that claim, store and end tasks read rows that home keeps: which endpoints are paused,
 * which webhooks hear of ends, which deployments are gone. So each cell has a copy of these, and its statements
 * are those of any database. A copy is made in one transaction that holds the row of the cell's identity,
 * and what it copies is read under that lock: of two nodes that copy at once, the later one has read later.
 *
 * The same look counts the beat of the cell up, and tells home of it. A cell whose beat is lower than
 * home has seen was restored from a backup: what it had under way then begins anew (`beginEpoch`).
 */

import { FOLD } from "../postgres/counts.ts";
import type { PostgresDatabase } from "../postgres/database.ts";
import { prepared, type Session, statement } from "../postgres/session.ts";
import type { PostgresStorage } from "../postgres/storage.ts";
import { CellRefused, identityFault } from "./identity.ts";

const OWN = prepared(
  "lock_cell",
  "SELECT platform_id, cell, name, beat, mirrored FROM cell_identity FOR UPDATE",
);

/** Home's rows as one text; those of secrets and addresses stay at home. */
const ROWS = `SELECT json_build_object(
    'paused', (SELECT coalesce(json_agg(one ORDER BY deployment_id, endpoint), '[]')
      FROM paused_endpoints AS one),
    'webhooks', (SELECT coalesce(json_agg(one ORDER BY deployment_id, name), '[]') FROM (
      SELECT organization_id, deployment_id, name, webhook_id, events, endpoint, named_only,
        disabled_at_ms FROM webhooks WHERE kind = 'webhook') AS one),
    'deleted', (SELECT coalesce(json_agg(one ORDER BY deployment_id), '[]') FROM (
      SELECT organization_id, deployment_id, deleted_at_ms FROM deleted_deployments) AS one)
  )::text AS rows`;

const AT_HOME = prepared(
  "cell_at_home",
  `WITH mirrored AS MATERIALIZED (${ROWS}), digested AS MATERIALIZED (
     SELECT rows, md5(rows) AS digest FROM mirrored
   )
   SELECT beat, load_number, digest, CASE WHEN digest <> $2 THEN rows END AS rows
   FROM cells CROSS JOIN digested WHERE cell = $1`,
);

const MIRROR = [
  statement("DELETE FROM paused_endpoints"),
  statement(
    `INSERT INTO paused_endpoints (organization_id, deployment_id, endpoint, paused_at_ms, paused_by)
     SELECT * FROM json_to_recordset($1::json -> 'paused') AS one (organization_id text,
       deployment_id text, endpoint text, paused_at_ms bigint, paused_by text)`,
  ),
  statement("DELETE FROM webhooks"),
  statement(
    `INSERT INTO webhooks (organization_id, deployment_id, name, webhook_id, url, events, endpoint,
       named_only, sealed, created_at_ms, created_by, disabled_at_ms)
     SELECT organization_id, deployment_id, name, webhook_id, '', events, endpoint, named_only, '', 0,
       '', disabled_at_ms
     FROM json_to_recordset($1::json -> 'webhooks') AS one (organization_id text, deployment_id text,
       name text, webhook_id text, events integer, endpoint text, named_only integer,
       disabled_at_ms bigint)`,
  ),
  statement("DELETE FROM deleted_deployments"),
  // Looked at from the beginning: home puts off what has no tasks there.
  statement(
    `INSERT INTO deleted_deployments (organization_id, deployment_id, deleted_at_ms, look_after_ms)
     SELECT organization_id, deployment_id, deleted_at_ms, deleted_at_ms
     FROM json_to_recordset($1::json -> 'deleted') AS one (organization_id text, deployment_id text,
       deleted_at_ms bigint)`,
  ),
] as const;

const BEAT = prepared("beat_cell", "UPDATE cell_identity SET beat = $1, mirrored = $2");
const SEEN = prepared("saw_cell", "UPDATE cells SET beat = greatest(beat, $2) WHERE cell = $1");

const FORGET_USAGE = [
  statement("DELETE FROM usage"),
  statement("DELETE FROM usage_units"),
] as const;
const FORGET_LOAD = statement(
  "UPDATE cell_identity SET load = NULL, load_number = greatest(load_number, $1)",
);

/** A cell that is looked after. */
export interface LookedAfter {
  readonly number: number;
  readonly name: string;
  readonly storage: PostgresStorage;
}

/** What a look has found. */
export interface Look {
  /** Its data was older than what home has seen of it; how many tasks went back to the queue. */
  readonly restored: number | undefined;
}

/** Brings home's rows to a cell, and looks whether it is what it was. Throws `CellRefused`. */
export async function lookAfter(
  home: PostgresDatabase,
  { number, name, storage }: LookedAfter,
  { platformId, nowMs }: { readonly platformId: string; readonly nowMs: number },
): Promise<Look> {
  // What a transaction throws is taken for an error of its connection, so a refusal is its answer.
  const found = await storage.beside((db) =>
    db.transaction(async (session) => {
      const [own] = await session.query(OWN);
      if (own === undefined) {
        return new CellRefused(
          `the database of cell ${name} is empty: restore it from its backup, or name the right one`,
        );
      }
      const identity = { platformId: String(own.platform_id), number: Number(own.cell) };
      const fault = identityFault({ ...identity, name: String(own.name) }, { platformId, name });
      if (fault !== undefined) {
        return fault;
      }
      if (identity.number !== number) {
        return new CellRefused(
          `cell ${name} is number ${number} at home, and its database says ${identity.number}: name the right one`,
        );
      }
      const [there] = await home.query(AT_HOME, number, own.mirrored);
      if (there === undefined) {
        return new CellRefused(`home does not know cell ${name}: start this node again`);
      }
      const isOlder = Number(own.beat) < Number(there.beat);
      const requeued = isOlder ? await beginAnew(session, storage, { ...there, nowMs }) : undefined;
      if (there.rows !== null) {
        await mirror(session, String(there.rows));
      }
      const next = Math.max(Number(own.beat), Number(there.beat)) + 1;
      await session.query(BEAT, next, there.digest);
      return { beat: next, restored: requeued };
    }),
  );
  if (found instanceof CellRefused) {
    throw found;
  }
  await home.query(SEEN, number, found.beat);
  return { restored: found.restored };
}

async function mirror(session: Session, rows: string): Promise<void> {
  for (const one of MIRROR) {
    await (one.text.startsWith("DELETE") ? session.query(one) : session.query(one, rows));
  }
}

/** What was used until the time of the backup is at home: it was taken there since. */
async function beginAnew(
  session: Session,
  storage: PostgresStorage,
  { load_number: loadNumber, nowMs }: { readonly load_number?: unknown; readonly nowMs: number },
): Promise<number> {
  const requeued = await storage.beginEpoch({ nowMs });
  await session.query(FOLD);
  for (const forget of FORGET_USAGE) {
    await session.query(forget);
  }
  await session.query(FORGET_LOAD, Number(loadNumber));
  return requeued;
}
