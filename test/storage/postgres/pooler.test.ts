import { expect, describe as group, test } from "vitest";
import { PostgresNotifier } from "../../../src/storage/postgres/notifier.ts";
import { PostgresStorage } from "../../../src/storage/postgres/storage.ts";
import { FOLLOWS_PREPARED, type Pooler, startPooler, WITHOUT_PGBOUNCER } from "../../pgbouncer.ts";
import { key, newTask } from "../fixtures.ts";
import { ask, newDatabase } from "./databases.ts";

const describe = WITHOUT_PGBOUNCER ? group.skip : group;

/** What a pooler has to be told where it knows no settings of sessions. */
const IGNORING = { ignore_startup_parameters: "options" };

/** The message that a start is refused with, or "opened"; and what the storage warned of. */
async function opened(
  url: string,
  directUrl?: string,
): Promise<{ readonly answer: string; readonly warnings: string[] }> {
  const warnings: string[] = [];
  const onWarning = (message: string): void => void warnings.push(message);
  await using storage = new PostgresStorage(url, { directUrl, onWarning });
  try {
    await storage.start();
    return { answer: "opened", warnings };
  } catch (err) {
    return { answer: err instanceof Error ? err.message : String(err), warnings };
  }
}

/** Submits from two nodes at once; answers how many tasks are stored. */
async function submitFromTwo(url: string): Promise<number> {
  await using one = new PostgresStorage(url);
  await using other = new PostgresStorage(url);
  await one.start();
  await other.start();
  const ids = Array.from({ length: 60 }, (_, number) => `task-${number}`);
  await Promise.all(
    ids.map(async (id, number) => {
      const [near, far] = number % 2 === 0 ? [one, other] : [other, one];
      await near.submitTasks({ tasks: [newTask(id)] });
      expect(await far.getTask(key(id))).toMatchObject({ status: "queued" });
      await near.countTasks({ deploymentId: "d" });
    }),
  );
  return ids.length;
}

/** A database of its own whose server keeps what it commits, whatever a session asks for. */
async function durableDatabase(): Promise<string> {
  const url = await newDatabase();
  await ask(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET synchronous_commit = on`);
  return url;
}

/** A pooler that may use as few sessions as it likes, before a database of its own. */
async function poolerOf(
  url: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<Pooler> {
  return startPooler(url, { ...IGNORING, default_pool_size: "4", ...settings });
}

describe(`behind pgbouncer in transaction mode${WITHOUT_PGBOUNCER}`, () => {
  test("works without prepared statements where the pooler mixes them up, and says what that costs", async () => {
    const url = await durableDatabase();
    await using pooler = await poolerOf(
      url,
      FOLLOWS_PREPARED ? { max_prepared_statements: "0" } : {},
    );
    const { answer, warnings } = await opened(pooler.url);
    expect(answer).toBe("opened");
    expect(warnings.join()).toMatch(/mixes up prepared statements.*max_prepared_statements/);
    await submitFromTwo(pooler.url);
  });

  test("uses prepared statements where the pooler follows them", async () => {
    const url = await durableDatabase();
    await using pooler = await poolerOf(
      url,
      FOLLOWS_PREPARED ? { max_prepared_statements: "200" } : { pool_mode: "session" },
    );
    const { answer, warnings } = await opened(pooler.url);
    expect(answer).toBe("opened");
    expect(warnings.join()).not.toMatch(/prepared/);
    if (FOLLOWS_PREPARED) {
      await submitFromTwo(pooler.url);
    }
  });

  test("says what to set where the pooler refuses the settings of sessions", async () => {
    await using pooler = await startPooler(await durableDatabase());
    const { answer } = await opened(pooler.url);
    expect(answer).toMatch(/unsupported startup parameter.*ignore_startup_parameters = options/);
  });

  test("is refused where names would lead elsewhere, leaves nothing there, and works as it says", async () => {
    const owner = await durableDatabase();
    const user = `app_${process.pid}`;
    await ask(owner, `CREATE ROLE ${user} LOGIN PASSWORD 'app'`);
    await ask(owner, `GRANT ALL ON DATABASE ${new URL(owner).pathname.slice(1)} TO ${user}`);
    await ask(owner, `GRANT ALL ON SCHEMA public TO ${user}`);
    const url = new URL(owner);
    url.username = user;
    url.password = "app";
    await using pooler = await poolerOf(url.href);
    for (let start = 0; start < 2; start += 1) {
      const { answer } = await opened(pooler.url);
      expect(answer).toMatch(
        /search_path=tessera.*run ALTER ROLE .*; then have the pooler reconnect/,
      );
      const statements = /run (ALTER .*); then/.exec(answer)?.[1] ?? "";
      const tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'";
      expect(await ask(owner, tables)).toEqual([]);
      if (start === 1) {
        await ask(url.href, statements);
      }
    }
    await pooler.reconnect();
    expect((await opened(pooler.url)).answer).toBe("opened");
    await submitFromTwo(pooler.url);
  });

  test("is refused where the server's commits do not wait for the disk", async () => {
    const url = await durableDatabase();
    const name = new URL(url).pathname.slice(1);
    await ask(url, `ALTER DATABASE ${name} SET synchronous_commit = off`);
    await using pooler = await poolerOf(url);
    expect((await opened(pooler.url)).answer).toMatch(/synchronous_commit=on.*ALTER ROLE/);
    expect((await opened(url)).answer).toBe("opened");
  });

  test("hears no notification and knows it, and hears them by the direct address", async () => {
    const url = await durableDatabase();
    await using pooler = await poolerOf(url);
    await using storage = new PostgresStorage(pooler.url, { directUrl: url });
    await storage.start();
    const state = async (through: string): Promise<string> => {
      const told = Promise.withResolvers<string>();
      const notify = (channel: string): Promise<void> => storage.notify(channel);
      await using notifier = new PostgresNotifier(through, { notify, onState: told.resolve });
      notifier.start();
      const first = await told.promise;
      expect(notifier.isUp).toBe(first === "up");
      return first;
    };
    expect(await state(pooler.url)).toBe("deaf");
    expect(await state(url)).toBe("up");
  });

  test("migrates by the direct address, which has to lead to the same database", async () => {
    const [url, other] = [await durableDatabase(), await newDatabase()];
    await using pooler = await poolerOf(url);
    expect((await opened(pooler.url, other)).answer).toMatch(
      /DATABASE_DIRECT_URL leads to another database/,
    );
    expect((await opened(pooler.url, url)).answer).toBe("opened");
  });
});
