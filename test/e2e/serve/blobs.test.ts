import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { generate } from "../../fixtures/services/serve/files.ts";
import { TestBucket } from "../../storage/blobs/bucket.ts";
import { ask, newDatabase } from "../../storage/postgres/databases.ts";
import { TestFolder } from "../../storage/sqlite/databases.ts";
import { refusal } from "./refusal.ts";
import { type Shown, serve } from "./served.ts";
import { upload } from "./uploads.ts";

const MEBIBYTE = 1 << 20;

async function generated(size: number): Promise<Buffer> {
  const parts = [];
  for await (const part of generate(size)) {
    parts.push(part);
  }
  return Buffer.concat(parts);
}

interface Digested {
  readonly seen: readonly { readonly sha256: string }[];
}

describe("two nodes on one Postgres", () => {
  it("share the files of tasks, and keep those of calls to themselves", async () => {
    const database = await newDatabase();
    await using one = await serve("files", { database });
    await using other = await serve("files", { database });
    const chunks = async () => {
      const [row] = await ask(database, "SELECT count(DISTINCT blob_id) FROM tessera.blob_chunks");
      return Number(row?.count);
    };
    expect((await upload(one.port, "/digest", { bytes: 3 * MEBIBYTE })).status).toBe(200);
    expect(await chunks()).toBe(0);
    // Whichever node runs them, all are found on both.
    for (const [from, to] of [
      [one, other],
      [other, one],
      [one, other],
    ] as const) {
      const sent = await upload(from.port, "/digest_later/submit", { bytes: 3 * MEBIBYTE });
      const { task_id } = sent.body as Shown;
      const { seen } = (await to.result("digest_later", task_id)).json as Digested;
      expect(seen[0]?.sha256).toBe(sent.sha256);
    }
    const id = await one.submit("make_later", { bytes: 3 * MEBIBYTE, how: "stream" });
    await other.ended("make_later", id);
    const expected = await generated(3 * MEBIBYTE);
    for (const node of [one, other]) {
      const path = `/make_later/get?task_id=${id}`;
      expect((await node.get(path)).body.equals(expected)).toBe(true);
      const part = await node.get(path, { range: "bytes=1000000-2000000" });
      expect(part.body.equals(expected.subarray(1_000_000, 2_000_001))).toBe(true);
    }
    expect(await chunks()).toBe(4);
  });
});

describe("a bucket that is away", () => {
  it("accepts nothing, and takes the result of a task when it is back", async () => {
    await using bucket = await TestBucket.start();
    using folder = new TestFolder();
    const blobs = { kind: "s3", ...bucket.options() } as const;
    await using served = await serve("files", { database: folder.file(), blobs });
    const first = await upload(served.port, "/digest_later/submit", { bytes: MEBIBYTE });
    const { task_id } = first.body as Shown;
    const { seen } = (await served.result("digest_later", task_id)).json as Digested;
    expect(seen[0]?.sha256).toBe(first.sha256);

    await bucket.stop();
    const refused = await upload(served.port, "/digest_later/submit", { bytes: MEBIBYTE });
    expect(refused.status).toBe(503);
    expect(refused.body).toMatchObject({ code: "unavailable" });
    const listed = await served.get("/api/v1/tasks");
    expect((listed.json as { tasks: unknown[] }).tasks).toHaveLength(1);
    // A call keeps its files on the node.
    expect((await upload(served.port, "/digest", { bytes: MEBIBYTE })).status).toBe(200);
    const id = await served.submit("make_later", { bytes: MEBIBYTE, how: "stream" });
    const waiting = await served.get(`/make_later/get?task_id=${id}&wait=3`);
    expect(refusal(waiting).reason).toBe("TASK_NOT_FINISHED");

    await bucket.startAgain();
    const made = await served.result("make_later", id);
    expect(made.body.equals(await generated(MEBIBYTE))).toBe(true);
    expect((await served.status("make_later", id)).attempt).toBe(1);

    await bucket.stop();
    const unread = await served.get(`/make_later/get?task_id=${id}`, { range: "bytes=0-9" });
    expect(refusal(unread)).toMatchObject({ status: 503, reason: "STORAGE_UNAVAILABLE" });
    expect(unread.headers.get("content-range")).toBeNull();
    await bucket.startAgain();
    expect(readdirSync(folder.path).filter((name) => name.includes("blobs"))).toEqual([]);
  });
});
