/**
 * `tessera admin check`: whether this machine is fit for a node with these settings.
 * Every part is checked, also where one before it has failed. Nothing is changed.
 */
import { statfs } from "node:fs/promises";
import { loadKeys } from "../../auth/keys.ts";
import type { CheckConfig, DataSecrets } from "../../config/start.ts";
import { isPostgres } from "../../config/values.ts";
import { findProgram, findSandbox } from "../../pool/sandbox/sandbox.ts";
import {
  type DatabaseAddress,
  examinePostgres,
  examineSqlite,
  shownDatabase,
} from "../adapters.ts";
import { keysPath } from "../data-folder.ts";
import { openAdministration } from "./open.ts";

/** `warning`: a node runs, but is weaker than it could be. */
type CheckResult = "ok" | "warning" | "failed";

/** What is said of each thing that is looked at. */
export interface Check {
  /** What was checked. */
  readonly name: string;
  readonly result: CheckResult;
  /** What was found, and what to do where it is not `ok`. */
  readonly detail: string;
}

type Found = Omit<Check, "name">;

/** Programs of the machine that some services need. */
const NEEDED_BY = {
  "system packages": ["apt-get", "dpkg-deb"],
  "container images": ["skopeo", "umoci"],
};

/** Below it, little is left for logs and artifacts. */
const MIN_FREE_DISK_BYTES = 1024 ** 3;

export async function checkMachine(
  config: CheckConfig,
  secrets: DataSecrets,
): Promise<readonly Check[]> {
  const checks: readonly (readonly [
    name: string,
    check: () => Promise<Found | readonly Check[]>,
  ])[] = [
    [
      "database",
      () =>
        isPostgres(secrets.database) ? checkPostgres(secrets) : checkDatabase(config, secrets),
    ],
    ["disk", () => checkDisk(config)],
    ["keys", async () => checkKeys(config, secrets)],
    ["sandbox", () => checkSandbox(config)],
    ["user", async () => checkUser()],
  ];
  const found: Check[] = [];
  for (const [name, check] of checks) {
    try {
      const checked = await check();
      found.push(...("result" in checked ? [{ name, ...checked }] : checked));
    } catch (err) {
      const detail = err instanceof Error ? err.message : String(err);
      found.push({ name, result: "failed", detail });
    }
  }
  return found;
}

async function checkDatabase(config: CheckConfig, secrets: DataSecrets): Promise<Found> {
  const fault = examineSqlite(secrets.database);
  if (fault !== undefined) {
    return { result: "failed", detail: `${secrets.database}: ${fault}` };
  }
  await using administration = await openAdministration(config, secrets, { create: false });
  const { length } = await administration.organizations();
  return { result: "ok", detail: `it answers, and is whole; organizations: ${length}` };
}

async function checkDisk({ dataFolder }: CheckConfig): Promise<Found> {
  const { bavail, bsize } = await statfs(dataFolder);
  const freeBytes = bavail * bsize;
  const free = `${(freeBytes / 1024 ** 3).toFixed(1)} GiB free in ${dataFolder}`;
  return freeBytes < MIN_FREE_DISK_BYTES
    ? { result: "warning", detail: `${free}: a node needs at least 1 GiB; make room` }
    : { result: "ok", detail: free };
}

async function checkKeys({ dataFolder }: CheckConfig, { keys }: DataSecrets): Promise<Found> {
  if (keys !== undefined) {
    loadKeys({ env: keys });
    return { result: "ok", detail: "read from TESSERA_KEYS" };
  }
  const path = keysPath(dataFolder);
  loadKeys({ path, create: false });
  return { result: "ok", detail: `read from ${path}` };
}

async function checkSandbox({ sandbox: mode, searchPath }: CheckConfig): Promise<Found> {
  const sandbox = await findSandbox(mode, searchPath);
  if (sandbox.level === "kernel") {
    return {
      result: "ok",
      detail: `kernel: ${sandbox.bubblewrap} holds the workers; their memory: ${sandbox.memoryHeldBy}${refusedServices(searchPath)}`,
    };
  }
  const { shortfall = "the setting asks for no more" } = sandbox;
  return {
    result: "warning",
    detail: `permission: deploy only code that you trust; for the kernel's: ${shortfall}; memory: ${sandbox.memoryHeldBy}`,
  };
}

/** The services that this machine refuses for what is not installed, as a part of a sentence. */
function refusedServices(searchPath: string): string {
  return Object.entries(NEEDED_BY)
    .map(([what, programs]) => {
      const missing = programs.filter((name) => findProgram(name, searchPath) === undefined);
      return missing.length === 0
        ? ""
        : `; services with ${what} are refused: there is no ${missing.join(" and no ")}`;
    })
    .join("");
}

async function checkUser(): Promise<Found> {
  return process.getuid?.() === 0
    ? {
        result: "warning",
        detail:
          "root: what breaks out of a worker has the whole machine; run the node as a user of its own",
      }
    : { result: "ok", detail: `user ${process.getuid?.() ?? "unknown"}, not root` };
}

// The part of `tessera admin check` that is about Postgres: one line for each thing to know.

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
async function checkPostgres(address: DatabaseAddress): Promise<readonly Check[]> {
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
