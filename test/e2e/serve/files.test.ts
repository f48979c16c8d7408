import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import { FolderBlobStore } from "../../../src/storage/blobs/folder.ts";
import { sweepBlobs } from "../../../src/storage/files/sweeper.ts";
import { generate } from "../../fixtures/services/serve/files.ts";
import { quickTimers } from "../../quick-timers.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";
import { ServerProcess } from "./process.ts";
import { type Served, type Shown, serve } from "./served.ts";
import { blocks, formRequest, partHead, upload } from "./uploads.ts";

quickTimers();

const MEBIBYTE = 1 << 20;
const LARGE = 200 * MEBIBYTE;
/** Hundreds of megabytes through a disk that others use too. */
const SLOW_MS = 180_000;

interface Digested {
  readonly seen: readonly { size: number; onDisk: number; sha256: string }[];
  readonly peakBytes: number;
}

let folder: string;
let database: string;
let served: Served;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tessera-large-"));
  database = join(folder, "tasks.db");
  served = await serve("files", { database });
});
afterAll(async () => {
  await served.stop();
  rmSync(folder, { recursive: true, force: true });
});

const blobsOf = (path = database): string[] => readdirSync(`${path}-blobs`);

describe("files of 200 MB are never held, in the node or in the worker", () => {
  let measured: ServerProcess;
  let before: number;
  beforeAll(async () => {
    const own = join(mkdtempSync(join(folder, "measured-")), "tasks.db");
    measured = await ServerProcess.start("files", own);
    await upload(measured.port, "/digest", { bytes: MEBIBYTE });
    before = await measured.peakBytes();
  });
  afterAll(() => measured.stop());

  const expectFlat = async (workerPeakBytes: number): Promise<void> => {
    expect((await measured.peakBytes()) - before).toBeLessThan(120 * MEBIBYTE);
    // What Node and the service take without any file is about half of this.
    expect(workerPeakBytes).toBeLessThan(256 * MEBIBYTE);
  };

  it("on their way to an api", { timeout: SLOW_MS }, async () => {
    const { status, body, sha256 } = await upload(measured.port, "/digest", { bytes: LARGE });
    expect(status).toBe(200);
    const { seen, peakBytes } = body as Digested;
    expect(seen).toEqual([{ name: "large.bin", size: LARGE, onDisk: LARGE, sha256 }]);
    await expectFlat(peakBytes);
  });

  it("on their way to a task", { timeout: SLOW_MS }, async () => {
    const path = "/digest_later/submit";
    const { status, body, sha256 } = await upload(measured.port, path, { bytes: LARGE });
    expect(status).toBe(202);
    const { task_id } = body as Shown;
    const digested = (await measured.result("digest_later", task_id)).json as Digested;
    expect(digested.seen[0]).toMatchObject({ size: LARGE, sha256 });
    await expectFlat(digested.peakBytes);
  });

  it("on their way from a task", { timeout: SLOW_MS }, async () => {
    const id = await measured.submit("make_later", { bytes: LARGE, how: "stream" });
    await measured.ended("make_later", id);
    const [res] = await once(get(`${measured.origin}/make_later/get?task_id=${id}`), "response");
    expect(await digestOf(res)).toBe(await digestOf(generate(LARGE)));
    const { body } = await upload(measured.port, "/digest", { bytes: 10 });
    await expectFlat((body as Digested).peakBytes);
  });
});

async function digestOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of chunks) {
    hash.update(chunk);
  }
  return hash.digest("hex");
}

describe("large arguments", () => {
  const form = (size: number, fields: Record<string, string> = {}): FormData => {
    const data = new FormData();
    data.append("file", new Blob([...blocks(size)] as Buffer<ArrayBuffer>[]), "a.bin");
    for (const [name, value] of Object.entries(fields)) {
      data.append(name, value);
    }
    return data;
  };

  it("are shared by a retry, and read again", async () => {
    const id = ((await served.send("/digest_later/submit", form(MEBIBYTE))).json as Shown).task_id;
    const first = (await served.result("digest_later", id)).json as Digested;
    const count = blobsOf().length;
    const again = await served.fetch(`/digest_later/retry?task_id=${id}`, { method: "POST" });
    const { task_id } = again.json as Shown;
    const second = (await served.result("digest_later", task_id)).json as Digested;
    expect(second.seen).toEqual(first.seen);
    expect(blobsOf().length).toBe(count);
  });

  it("count for idempotency by their bytes", async () => {
    const headers = { "idempotency-key": "large" };
    const send = (size: number) => served.send("/digest_later/submit", form(size), headers);
    const first = (await send(MEBIBYTE)).json as Shown;
    const second = await send(MEBIBYTE);
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect((second.json as Shown).task_id).toBe(first.task_id);
    expect((await send(MEBIBYTE + 1)).status).toBe(409);
  });

  it("can come as data: URLs, and beside small files in the order of the form", async () => {
    const data = Buffer.concat([...blocks(MEBIBYTE)]);
    const url = `data:application/octet-stream;base64,${data.toString("base64")}`;
    const small = "data:text/plain,small";
    const answer = await served.post("/digest", { file: url, others: [small, url] });
    const { seen } = answer.json as Digested;
    expect(seen.map(({ size, onDisk }) => [size, onDisk])).toEqual([
      [MEBIBYTE, MEBIBYTE],
      [5, 5],
      [MEBIBYTE, MEBIBYTE],
    ]);
  });

  it("are removed when the call that they came with is refused", async () => {
    const before = new Set(blobsOf());
    const refused = await served.send("/digest_later/submit", form(MEBIBYTE, { unknown: "1" }));
    expect(refused.status).toBe(400);
    const left = () => blobsOf().filter((blob) => !before.has(blob));
    await expect.poll(left, { timeout: 40_000, interval: 500 }).toEqual([]);
  });

  it("larger than the limit are refused as soon as that is known", async () => {
    await using limited = await serve("files", { fileBodyBytes: 2 * MEBIBYTE });
    const { status, body } = await upload(limited.port, "/digest", { bytes: 50 * MEBIBYTE });
    expect(status).toBe(413);
    expect(body).toMatchObject({ code: "resource_exhausted" });
    expect((await upload(limited.port, "/digest", { bytes: MEBIBYTE })).status).toBe(200);
  });
});

describe("blobs", () => {
  it("are deleted with their task", async () => {
    const before = new Set(blobsOf());
    const id = await served.submit("make_briefly", { bytes: MEBIBYTE, how: "stream" });
    expect((await served.ended("make_briefly", id)).status).toBe("success");
    const left = () => blobsOf().filter((blob) => !before.has(blob)).length;
    expect(left()).toBe(1);
    await expect.poll(left, { timeout: 50_000, interval: 500 }).toBe(0);
  });

  it("of a submit whose node is killed before it is stored are swept", async () => {
    const own = join(mkdtempSync(join(folder, "killed-")), "tasks.db");
    const killed = await ServerProcess.start("files", own);
    const req = formRequest(killed.port, "/digest_later/submit");
    req.on("error", () => {});
    req.write(partHead("file", "first.bin"));
    for (const block of blocks(2 * MEBIBYTE)) {
      req.write(block);
    }
    req.write(partHead("others", "second.bin"));
    for (const block of blocks(2 * MEBIBYTE)) {
      req.write(block);
    }
    // The first has come whole, and bears its name by then; the second has not.
    const unfinished = () =>
      blobsOf(own)
        .map((name) => name.endsWith(".part"))
        .sort();
    await expect.poll(unfinished).toEqual([false, true]);
    await killed.kill();
    expect(unfinished()).toEqual([false, true]);

    await using storage = await openSqlite(own);
    await using blobs = new FolderBlobStore(`${own}-blobs`);
    expect(await sweepBlobs({ storage, blobs, now: Date.now })).toBe(0);
    const hoursLater = () => Date.now() + 2 * 3_600_000;
    expect(await sweepBlobs({ storage, blobs, now: hoursLater })).toBe(2);
    expect(blobsOf(own)).toEqual([]);
    expect(await sweepBlobs({ storage, blobs, now: () => hoursLater() * 2 })).toBe(0);
  });

  it("of a database in memory are gone with the server", async () => {
    // A folder of its own: other tests start nodes meanwhile.
    const temporary = mkdtempSync(join(folder, "temporary-"));
    vi.stubEnv("TMPDIR", temporary);
    onTestFinished(() => void vi.unstubAllEnvs());
    {
      await using fleeting = await serve("files");
      expect(
        (await upload(fleeting.port, "/digest_later/submit", { bytes: MEBIBYTE })).status,
      ).toBe(202);
      expect(nodeFoldersIn(temporary)).not.toEqual([]);
    }
    expect(nodeFoldersIn(temporary)).toEqual([]);
    expect(existsSync(":memory:-blobs")).toBe(false);
  });
});

function nodeFoldersIn(temporary: string): string[] {
  return readdirSync(temporary).filter((name) => name.startsWith("tessera-node-"));
}
