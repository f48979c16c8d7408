import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask, serverUrl } from "../../storage/postgres/databases.ts";
import { Person } from "../cli/person.ts";
import { run } from "../cli/program.ts";
import { type Answer, artifact, call, until, World } from "../hosting/world.ts";
import { newPostgres } from "../start/databases.ts";
import { bearer, Folder, PASSWORD, type Platform, start } from "../start/platform.ts";
import { SubmitLoad } from "./load.ts";

/** Submits per second while the backup is made; see CONTRIBUTING.md for the long run. */
const RATE = 500;

/** How long the load lasts before the backup begins. */
const LOAD_SECONDS = Number(process.env.TESSERA_BACKUP_SECONDS ?? 2);

const ENV = { TESSERA_BACKUP_PASSPHRASE: "correct horse battery" };

/** The queue takes what comes in, and one worker runs it. */
const QUICK = {
  "forMs: z.int().default(0) }, output: z.string() }":
    "forMs: z.int().default(0) }, output: z.string(), concurrency: 100, queueLimit: 100_000 }",
};

/** More than fits into a row: it is kept as a file. */
const LARGE = "x".repeat(700_000);

async function admin(args: readonly string[], env: Readonly<Record<string, string>> = ENV) {
  return await run(["admin", ...args], { env });
}

/** The result of each task, once it has ended. */
async function results(platform: Platform, ids: readonly string[]): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const id of ids) {
    answers.push(await call(platform, "echo", `/work/get?task_id=${id}&wait=30`));
  }
  return answers;
}

describe("a platform that was backed up under load", () => {
  let world: World;
  let away: Folder;
  let restored: Platform;
  let before: readonly string[];
  let token: { readonly id: string; readonly value: string };
  let running: string;
  let large: string;
  const file = () => join(world.folder.path, "backup.tar");
  const submit = async (text: string, forMs = 0): Promise<string> =>
    (await world.call("echo", "/work/submit", { body: { text, forMs } })).json.task_id;

  beforeAll(async () => {
    world = await World.start();
    away = new Folder();
    await world.deployed("echo", await artifact("echo", QUICK), {
      settings: { minWorkers: 1, maxWorkers: 1 },
    });
    token = await world.platform.createToken(world.cookie);
    large = await submit(LARGE);
    expect((await world.call("echo", `/work/get?task_id=${large}&wait=30`)).status).toBe(200);
    running = await submit("running", 600_000);
    await until(
      () => world.call("echo", `/work/status?task_id=${running}`),
      ({ json }) => json.status === "running",
    );
    await using load = new SubmitLoad(world.platform, RATE);
    await load.reaches(RATE * LOAD_SECONDS);
    before = [...load.acknowledged];
    const beganMs = performance.now();
    const made = await admin(["backup", file(), "--data", world.folder.data]);
    const seconds = (performance.now() - beganMs) / 1_000;
    expect(made.code, made.stderr).toBe(0);
    console.info(
      `${before.length} tasks before the backup, ${load.acknowledged.length - before.length} during its ${seconds.toFixed(1)} s, ${load.perSecond.toFixed(0)} submits/s, ${statSync(file()).size} bytes`,
    );
    await load[Symbol.asyncDispose]();
    await world.platform[Symbol.asyncDispose]();
    const back = await admin(["restore", file(), "--data", away.data]);
    expect(back.code, back.stderr).toBe(0);
    expect(back.stderr).toMatch(/\d+ tasks? (?:was|were) running/);
    restored = await start(away);
    await until(
      () => call(restored, "echo", "/say", { body: { text: "x" } }),
      ({ status }) => status === 200,
    );
  }, 300_000);
  afterAll(async () => {
    await restored?.[Symbol.asyncDispose]();
    away[Symbol.dispose]();
    await world[Symbol.asyncDispose]();
  });

  it("has every task that was acknowledged before the backup began, with its result", async () => {
    const answers = await results(restored, before);
    expect(answers.filter(({ text }) => !text.startsWith("one task "))).toEqual([]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(before.length);
  }, 120_000);

  it("has the large files of tasks", async () => {
    const [answer] = await results(restored, [large]);
    expect(answer?.text).toBe(`one ${LARGE}`);
  });

  it("runs again what was running, as no fault of the task's", async () => {
    const { json } = await until(
      () => call(restored, "echo", `/work/status?task_id=${running}`),
      ({ json: status }) => status.status === "running",
    );
    expect(json.attempt).toBe(2);
  });

  it("knows its people and tokens, and nobody is signed in", async () => {
    expect(await restored.whoIs(bearer(token.value))).toBe(200);
    expect(await restored.whoIs(world.cookie)).toBe(401);
    expect((await restored.signIn("ada@example.com", PASSWORD)).status).toBe(200);
  });

  it("leaves nothing behind but the file and the data", () => {
    const left = readdirSync(world.folder.path).filter((name) => name.includes("backup"));
    expect(left).toEqual(["backup.tar"]);
    expect(statSync(file()).mode & 0o777).toBe(0o600);
    expect(readdirSync(away.data).filter((name) => name.includes("restoring"))).toEqual([]);
  });

  it("is verified with and without the passphrase", async () => {
    const passphraseFile = join(world.folder.path, "passphrase");
    writeFileSync(passphraseFile, `${ENV.TESSERA_BACKUP_PASSPHRASE}\n`);
    const verify = ["backup", "verify", file(), "--passphrase-file", passphraseFile];
    const verified = await admin(verify, {});
    expect(verified).toMatchObject({ code: 0, stdout: "" });
    expect(verified.stderr).toContain("opens its keys");
    const without = await admin(["backup", "verify", file()], {});
    expect(without.code).toBe(0);
    expect(without.stderr).toContain("were not opened");
    const wrong = await admin(["backup", "verify", file()], {
      TESSERA_BACKUP_PASSPHRASE: "another passphrase",
    });
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain("the passphrase is not that of this backup");
  });

  it("is backed up with a passphrase only, and into a new file only", async () => {
    const data = ["--data", world.folder.data];
    const none = await admin(["backup", `${file()}.2`, ...data], {});
    expect(none.code).toBe(2);
    expect(none.stderr).toContain("--passphrase-file");
    const short = await admin(["backup", `${file()}.2`, ...data], {
      TESSERA_BACKUP_PASSPHRASE: "short",
    });
    expect(short.stderr).toContain("12 characters");
    const again = await admin(["backup", file(), ...data]);
    expect(again.stderr).toContain("exists, and is not overwritten");
    expect(existsSync(`${file()}.2`)).toBe(false);
  });

  it("asks for the passphrase on a terminal, twice for a new backup", async () => {
    using person = new Person();
    const data = ["--data", away.data];
    const typed = join(world.folder.path, "typed.tar");
    const asked = (again: string) =>
      person.run(["admin", "backup", typed, ...data], {
        answers: [
          ["Passphrase", "a typed passphrase\n"],
          ["The same once more", `${again}\n`],
        ],
      });
    const differs = await asked("another passphrase");
    expect(differs.code).toBe(2);
    expect(differs.stderr).toContain("the two passphrases differ");
    expect(existsSync(typed)).toBe(false);
    const made = await asked("a typed passphrase");
    expect(made.code, made.stderr).toBe(0);
    expect(made.stderr).toContain("the database: ");
    const verified = await person.run(["admin", "backup", "verify", typed], {
      answers: [["Passphrase", "a typed passphrase\n"]],
    });
    expect(verified.stderr).toContain("opens its keys");
    const skipped = await person.run(["admin", "backup", "verify", typed], {
      answers: [["Passphrase", "\n"]],
    });
    expect(skipped.stderr).toContain("were not opened");
  });

  it("is restored into an empty data folder only", async () => {
    const refused = await admin(["restore", file(), "--data", away.data]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain("is not empty");
  });
});

describe("a copy of the files of a running platform", () => {
  it("does not start without the write-ahead log, and says why", async () => {
    await using world = await World.start();
    using copy = new Folder();
    mkdirSync(copy.data, { mode: 0o700 });
    for (const name of ["tessera.db", "keys.json", "blobs"]) {
      cpSync(join(world.folder.data, name), join(copy.data, name), { recursive: true });
    }
    await expect(start(copy)).rejects.toThrow("write-ahead log");
  });

  it("does not start as a new platform without its database", async () => {
    await using world = await World.start();
    await world.deployed("echo", await artifact());
    using copy = new Folder();
    mkdirSync(copy.data, { mode: 0o700 });
    for (const name of ["keys.json", "blobs"]) {
      cpSync(join(world.folder.data, name), join(copy.data, name), { recursive: true });
    }
    await expect(start(copy)).rejects.toThrow("its database is not at");
  });

  it("tells of blobs that were left behind", async () => {
    await using world = await World.start();
    await world.deployed("echo", await artifact());
    await world.platform[Symbol.asyncDispose]();
    rmSync(join(world.folder.data, "blobs"), { recursive: true });
    const refused = await admin([
      "backup",
      join(world.folder.path, "b.tar"),
      "--data",
      world.folder.data,
    ]);
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(/\d+ files? that the database names are missing/);
  });

  it("is not ready while its results cannot be fetched, and is when its blobs are put back", async () => {
    await using world = await World.start();
    await world.deployed("echo", await artifact());
    await world.platform[Symbol.asyncDispose]();
    const [blobs, aside] = ["blobs", "aside"].map((name) => join(world.folder.data, name));
    renameSync(blobs ?? "", aside ?? "");
    await using platform = await start(world.folder);
    const ready = async () => {
      const res = await fetch(`${platform.url}/readyz`);
      return { status: res.status, text: await res.text() };
    };
    const refused = await ready();
    expect(refused.status).toBe(503);
    expect(refused.text).toContain("STORAGE_UNAVAILABLE");
    expect(refused.text).toContain("the store of large files has none");
    rmSync(blobs ?? "", { recursive: true, force: true });
    renameSync(aside ?? "", blobs ?? "");
    await until(ready, ({ status }) => status === 200);
  }, 60_000);
});

/** Another database with the same content, as its own tools restore it. */
async function copyOf(database: string): Promise<string> {
  const url = new URL(database);
  url.pathname += "_restored";
  const [from, to] = [database, url.href].map((each) => new URL(each).pathname.slice(1));
  await ask(await serverUrl(), `CREATE DATABASE ${to} TEMPLATE ${from}`);
  return url.href;
}

describe("a platform on Postgres", () => {
  it("is backed up without its database, which its own tools copy", async () => {
    const database = await newPostgres();
    await using world = await World.start({ database });
    await world.deployed("echo", await artifact());
    const env = { ...ENV, DATABASE_URL: database };
    const file = join(world.folder.path, "backup.tar");
    const made = await admin(["backup", file, "--data", world.folder.data], env);
    expect(made.code, made.stderr).toBe(0);
    expect(made.stderr).toContain("pg_dump --format=custom --schema=tessera");
    expect(made.stderr).not.toContain(new URL(database).password);
    using away = new Folder();
    const early = await admin(["restore", file, "--data", away.data], env);
    expect(early.code).toBe(1);
    expect(early.stderr).toContain("nodes run on");
    const elsewhere = await admin(["restore", file, "--data", away.data]);
    expect(elsewhere.stderr).toContain("pg_restore");
    await world.platform[Symbol.asyncDispose]();
    const copy = await copyOf(database);
    const back = await admin(["restore", file, "--data", away.data], {
      ...ENV,
      DATABASE_URL: copy,
    });
    expect(back.code, back.stderr).toBe(0);
    await using restored = await start(away, { database: copy });
    await until(
      () => call(restored, "echo", "/say", { body: { text: "x" } }),
      ({ text }) => text === "one x",
    );
    expect(await restored.whoIs(world.cookie)).toBe(401);
  }, 120_000);

  it("has its files outside of the database in the backup", async () => {
    const database = await newPostgres();
    using away = new Folder();
    await using world = await World.start({
      database,
      env: { TESSERA_BLOBS: join(away.path, "blobs") },
    });
    await world.deployed("echo", await artifact());
    const env = { ...ENV, DATABASE_URL: database };
    const file = join(away.path, "backup.tar");
    const from = ["--data", world.folder.data, "--blobs", join(away.path, "blobs")];
    const made = await admin(["backup", file, ...from], env);
    expect(made.stderr).toMatch(/with the keys, \d+ files?/);
    await world.platform[Symbol.asyncDispose]();
    const to = ["--data", away.data, "--blobs", join(away.path, "restored")];
    expect(await admin(["restore", file, ...to], env)).toMatchObject({ code: 0 });
    await using restored = await start(away, {
      database,
      env: { TESSERA_BLOBS: join(away.path, "restored") },
    });
    await until(
      () => call(restored, "echo", "/say", { body: { text: "x" } }),
      ({ text }) => text === "one x",
    );
  }, 120_000);
});
