/**
 * What the compose file starts, without an engine: the platform on Postgres with the variables of
 * both services, and its health check.
 */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { POSTGRES_PASSWORD, POSTGRES_USER, startPostgres } from "../../postgres.ts";
import { ROOT } from "../clients/python-environment.ts";
import { Folder, type Platform, start } from "../start/platform.ts";

interface Service {
  readonly environment: Readonly<Record<string, string>>;
  readonly healthcheck: { readonly test: readonly string[] };
}

const FILE = readFileSync(join(ROOT, "packaging/compose/compose.yaml"), "utf8");

/** The services, with what the shell of the operator sets. */
function services(shell: Readonly<Record<string, string>>): Readonly<Record<string, Service>> {
  const text = FILE.replaceAll(
    /\$\{(\w+):-([^}]*)\}/g,
    (_, name, otherwise) => shell[name] || otherwise,
  );
  expect(text).not.toContain("${");
  return parse(text, { merge: true }).services;
}

const named = (all: Readonly<Record<string, Service>>, name: string): Service => {
  const service = all[name];
  if (service === undefined) {
    throw new Error(`the compose file has no service ${name}`);
  }
  return service;
};

/** Runs the service's health check at the port of a platform; rejects where it finds it ill. */
async function check({ healthcheck }: Service, platform: Platform): Promise<void> {
  const [kind, program, ...args] = healthcheck.test;
  expect([kind, program]).toEqual(["CMD", "node"]);
  const own = args.map((arg) => arg.replace(":3000/", `:${platform.started.port}/`));
  expect(own).not.toEqual(args);
  await promisify(execFile)(process.execPath, own, { timeout: 10_000 });
}

it("starts the platform on Postgres with its variables, and its health check sees it", async () => {
  const all = services({ POSTGRES_PASSWORD });
  const [tessera, postgres] = [named(all, "tessera"), named(all, "postgres")];
  await using server = await startPostgres();
  // The image of Postgres makes this user, with this password, and this database of theirs.
  expect(postgres.environment).toEqual({
    POSTGRES_USER,
    POSTGRES_DB: "tessera",
    POSTGRES_PASSWORD,
  });
  const client = new Client({ connectionString: server.url });
  await client.connect();
  await client.query(`create database ${postgres.environment.POSTGRES_DB}`);
  await client.end();

  const { DATABASE_URL: address = "", ...others } = tessera.environment;
  const database = address.replace("@postgres/", `@127.0.0.1:${server.port}/`);
  expect(database).not.toBe(address);
  using folder = new Folder();
  const platform = await start(folder, { database, env: others });
  try {
    await platform.setUp();
    await check(tessera, platform);
  } finally {
    await platform[Symbol.asyncDispose]();
  }
  await expect(check(tessera, platform)).rejects.toMatchObject({ code: 1 });
});

it("starts the platform on SQLite with the variables of its profile", async () => {
  const alone = named(services({}), "tessera-sqlite");
  using folder = new Folder();
  await using platform = await start(folder, { env: alone.environment });
  await platform.setUp();
  await check(alone, platform);
});
