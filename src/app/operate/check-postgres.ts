/** The part of `tessera admin check` that is about Postgres: one line for each thing to know. */
import { type DatabaseAddress, examinePostgres, shownDatabase } from "../adapters.ts";
import type { Check, CheckResult } from "./check-result.ts";

/** Clocks of machines that are kept in step differ by less. */
const MAX_CLOCK_DIFFERENCE_MS = 1_000;

/** A synchronous standby that is further behind delays every commit. */
const MAX_REPLICA_LAG_BYTES = 64 * 1024 * 1024;

type Facts = Awaited<ReturnType<typeof examinePostgres>>;
type Judge = (facts: Facts) => readonly [result: CheckResult, detail: string];

const JUDGES: Readonly<Record<string, Judge>> = {
  schema: ({ schemaVersion: applied, latestSchemaVersion: latest }) => {
    if (applied === 0) {
      return ["ok", "none yet: the first start creates it"];
    }
    if (applied > latest) {
      return [
        "failed",
        `version ${applied}, this program knows versions up to ${latest}: run a newer version of tessera`,
      ];
    }
    return [
      "ok",
      applied < latest
        ? `version ${applied}; a start brings it to ${latest}`
        : `version ${applied}`,
    ];
  },

  search_path: ({ fault, schemaVersion, session: { schema } }) => {
    if (fault !== undefined) {
      return ["failed", fault];
    }
    return ["ok", schemaVersion === 0 ? "judged when there is a schema" : `leads to ${schema}`];
  },

  "prepared statements": ({ session: { pooled }, warning }) =>
    warning === undefined
      ? ["ok", pooled ? "a pooler follows them" : "no pooler is between"]
      : ["warning", warning],

  notifications: ({ roundTripMs }) =>
    roundTripMs === undefined
      ? [
          "warning",
          "do not arrive, so nodes ask every second: set DATABASE_DIRECT_URL to an address that leads to Postgres without a pooler",
        ]
      : ["ok", `arrive within ${roundTripMs} ms`],

  clocks: ({ clockAheadMs }) =>
    Math.abs(clockAheadMs) > MAX_CLOCK_DIFFERENCE_MS
      ? [
          "warning",
          `this machine is ${clockAheadMs} ms ahead of the database, so times of tasks are wrong by that: keep both in step by NTP`,
        ]
      : ["ok", `differ by ${Math.abs(clockAheadMs)} ms`],

  durability: ({ fsync, synchronousCommit, synchronousStandbys }) => {
    if (!fsync) {
      return [
        "failed",
        "fsync is off: a crash of its machine may destroy the database; switch it on",
      ];
    }
    if (synchronousCommit === "off") {
      return ["failed", "synchronous_commit is off: a crash loses tasks that were acknowledged"];
    }
    const standbys =
      synchronousStandbys === ""
        ? "no standby is waited for: a failover may lose the last tasks"
        : `commits wait for ${synchronousStandbys}`;
    return ["ok", `fsync on, synchronous_commit ${synchronousCommit}; ${standbys}`];
  },

  replicas: ({ replicas, synchronousStandbys }) => {
    const shown = replicas.map(
      ({ name, sync, lagBytes }) =>
        `${name} (${sync}, ${lagBytes === undefined ? "lag not shown to this user: grant pg_monitor" : `${lagBytes} bytes behind`})`,
    );
    const isSync = replicas.some(({ sync }) => ["sync", "quorum"].includes(sync));
    if (synchronousStandbys !== "" && replicas.length === 0) {
      return ["failed", `none, and commits wait for ${synchronousStandbys}: start a standby`];
    }
    if (synchronousStandbys !== "" && !isSync && replicas.every(({ sync }) => sync !== "unknown")) {
      return ["failed", `none is synchronous: ${shown.join(", ")}`];
    }
    const late = replicas.some(({ lagBytes = 0 }) => lagBytes > MAX_REPLICA_LAG_BYTES);
    return [late ? "warning" : "ok", shown.length === 0 ? "none" : shown.join(", ")];
  },
};

/** Rejects with one message where the database does not answer. */
export async function checkPostgres(address: DatabaseAddress): Promise<readonly Check[]> {
  const facts = await examinePostgres(address.database, address.directDatabase);
  const first: Check = {
    name: "database",
    result: "ok",
    detail: `${shownDatabase(address.database)} answers, Postgres ${facts.session.version}`,
  };
  const others = Object.entries(JUDGES).map(([name, judge]): Check => {
    const [result, detail] = judge(facts);
    return { name, result, detail };
  });
  return [first, ...others];
}
