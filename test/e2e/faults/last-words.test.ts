/** What a function says before it ends is in the log of its task. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseUrl } from "../../storage/postgres/databases.ts";
import { type Served, serve } from "../serve/served.ts";

interface Said {
  readonly attempt: number;
  readonly log?: { readonly message: string };
  readonly progress?: { readonly fraction: number };
}

const DATABASES: readonly (readonly [name: string, url: () => Promise<string>])[] = [
  ["SQLite", () => Promise.resolve(":memory:")],
  ["Postgres", databaseUrl],
];

describe.each(DATABASES)("the log of a task on %s", (_name, database) => {
  let served: Served;
  beforeAll(async () => {
    served = await serve("last-words", { database: await database(), graceMs: 100 });
  });
  afterAll(() => served.stop());

  /** What an attempt of a task that has ended said, in order. */
  async function said(endpoint: string, taskId: string, attempt = 1): Promise<string[]> {
    const { text } = await served.get(`/${endpoint}/events?task_id=${taskId}`);
    const events = text
      .split("\n")
      .flatMap((line): Said[] => (line.startsWith("data: {") ? [JSON.parse(line.slice(6))] : []));
    return events
      .filter((event) => event.attempt === attempt)
      .flatMap(({ log, progress }) => log?.message ?? progress?.fraction.toString() ?? []);
  }

  it.each(["alone", "in_batches", "in_pieces"])(
    "has its last lines where it runs %s",
    async (how) => {
      const ids = await Promise.all(
        Array.from({ length: 24 }, () => served.submit(how, { ends: "returns" })),
      );
      await Promise.all(ids.map((id) => served.result(how, id)));
      const logs = await Promise.all(ids.map((id) => said(how, id)));
      expect(logs).toEqual(ids.map(() => ["first", "last", "1"]));
    },
    30_000,
  );

  it("has what an item of a batch said before it failed", async () => {
    const ids = await Promise.all(
      ["throws", "returns"].map((ends) => served.submit("in_batches", { ends })),
    );
    await Promise.all(ids.map((id) => served.result("in_batches", id)));
    for (const id of ids) {
      expect(await said("in_batches", id)).toEqual(["first", "last", "1"]);
    }
  });

  it.each([
    ["throws", []],
    ["blocks", []],
    ["exits", [expect.stringContaining("the worker ended while this ran")]],
  ] as const)(
    "has the last lines of an attempt that %s",
    async (ends, more) => {
      const id = await served.submit("alone", { ends });
      expect((await served.result("alone", id)).json).toBe(ends);
      expect(await said("alone", id, 1)).toEqual(["first", "last", "1", ...more]);
      expect(await said("alone", id, 2)).toEqual(["first", "last", "1"]);
    },
    30_000,
  );
});
