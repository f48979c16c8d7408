/**
 * What the sessions behind an address are like. A pooler between a node and Postgres may drop the
 * settings that a session asks for, and may give each transaction another session, which mixes up
 * prepared statements. Both are found out at the start, by trying, because no pooler says so.
 */
import { randomUUID } from "node:crypto";
import pg from "pg";
import { PLANNER_SETTINGS, REQUIRED_SETTINGS } from "./connection.ts";

/** SQLSTATEs of statements that were prepared in another session. */
const MIXED_UP = new Set(["42P05", "26000"]);

/** What a session of an address turned out to be like. */
export interface SessionFacts {
  /** As Postgres tells it, such as `18.4`. */
  readonly version: string;
  /** Whether a pooler answers in place of Postgres. */
  readonly pooled: boolean;
  /** Whether prepared statements stay with the connection that prepared them. */
  readonly prepared: boolean;
  /** Where unqualified names lead to. */
  readonly schema: string | null;
  /** What the session has for each of our settings. */
  readonly settings: Readonly<Record<string, string>>;
  readonly user: string;
  readonly database: string;
}

const EXAMINE = `SELECT pg_backend_pid() AS pid, current_schema() AS schema, current_user AS user,
  current_database() AS database, current_setting('server_version') AS version,
  ${[...Object.keys(REQUIRED_SETTINGS), ...Object.keys(PLANNER_SETTINGS)]
    .map((name) => `current_setting('${name}') AS ${name}`)
    .join(", ")}`;

/** Asks a connection about its session; `prepared` is not known yet. */
export async function examineSession(
  client: pg.ClientBase,
): Promise<Omit<SessionFacts, "prepared"> & { readonly prepared: true }> {
  const { rows } = await client.query<Record<string, string>>(EXAMINE);
  const { pid, schema = null, user = "", database = "", version = "", ...settings } = rows[0] ?? {};
  // A pooler invents the number that it gives for cancelling.
  const { processID } = client as unknown as { readonly processID: unknown };
  const pooled = Number(pid) !== Number(processID);
  return { version, pooled, prepared: true, schema, settings, user, database };
}

/**
 * Whether two connections may each prepare a statement of the same name and use it again. Each does
 * so twice: a pooler that gives both the same session fails at the second name, and one that takes
 * turns fails at the second use.
 */
export async function keepsPrepared(connect: () => Promise<pg.Client>): Promise<boolean> {
  const statement = { name: `tessera_probe_${randomUUID()}`, text: "SELECT 1" };
  const clients: pg.Client[] = [];
  try {
    for (let number = 0; number < 2; number += 1) {
      const client = await connect();
      clients.push(client);
      await client.query(statement);
      await client.query(statement);
    }
    return true;
  } catch (err) {
    if (err instanceof pg.DatabaseError && MIXED_UP.has(err.code ?? "")) {
      return false;
    }
    throw err;
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
}

/** Settings that the session does not have, with the values that it should have. */
function missingSettings(
  { settings }: SessionFacts,
  wanted: Readonly<Record<string, string>>,
): readonly (readonly [name: string, value: string])[] {
  return Object.entries(wanted).filter(([name, value]) => {
    // Every other answer waits for a disk at least.
    const fits =
      name === "synchronous_commit" ? settings[name] !== "off" : settings[name] === value;
    return !fits;
  });
}

/** Why no node may work with such sessions; undefined where it may. */
export function sessionFault(facts: SessionFacts, schema: string): string | undefined {
  const elsewhere = facts.schema !== schema;
  const lost = missingSettings(facts, REQUIRED_SETTINGS);
  if (!elsewhere && lost.length === 0) {
    return undefined;
  }
  const wanted = [...(elsewhere ? [["search_path", schema] as const] : []), ...lost];
  return `its sessions do not have what they asked for (${shown(wanted)}), as behind a pooler that ignores it: ${remedy(facts, wanted)}`;
}

/** What is weaker than it could be; undefined where nothing is. */
export function sessionWarning(facts: SessionFacts): string | undefined {
  const slow = missingSettings(facts, PLANNER_SETTINGS);
  const warnings = [
    ...(facts.prepared
      ? []
      : [
          "a pooler mixes up prepared statements, so none are used and each call costs the database more: set max_prepared_statements there (pgbouncer 1.21 or newer), or use its session mode",
        ]),
    ...(slow.length === 0
      ? []
      : [
          `a pooler ignores settings that keep statements quick (${shown(slow)}): ${remedy(facts, slow)}`,
        ]),
  ];
  return warnings.length === 0 ? undefined : warnings.join("; ");
}

function shown(settings: readonly (readonly [string, string])[]): string {
  return settings.map(([name, value]) => `${name}=${value}`).join(", ");
}

function remedy(
  { user, database }: SessionFacts,
  settings: readonly (readonly [string, string])[],
): string {
  const role = `ALTER ROLE ${pg.escapeIdentifier(user)} IN DATABASE ${pg.escapeIdentifier(database)}`;
  const statements = settings.map(([name, value]) => {
    const plain = /^[a-z_][a-z0-9_]*$/.test(value);
    return `${role} SET ${name} = ${plain ? value : pg.escapeLiteral(value)}`;
  });
  return `run ${statements.join("; ")}; then have the pooler reconnect (pgbouncer: RECONNECT)`;
}
