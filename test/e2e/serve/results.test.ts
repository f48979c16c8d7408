import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { get } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { generate } from "../../fixtures/services/serve/files.ts";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

const MEBIBYTE = 1 << 20;

const curl = async (...args: readonly string[]) =>
  (await promisify(execFile)("curl", ["-s", ...args], { encoding: "buffer", maxBuffer: 1e9 }))
    .stdout;

async function generated(size: number): Promise<Buffer> {
  const parts = [];
  for await (const part of generate(size)) {
    parts.push(part);
  }
  return Buffer.concat(parts);
}

let folder: string;
let database: string;
let served: Served;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "tessera-results-"));
  database = join(folder, "tasks.db");
  served = await serve("files", { database });
});
afterAll(async () => {
  await served.stop();
  rmSync(folder, { recursive: true, force: true });
});

const make = async (bytes: number, how = "stream"): Promise<string> => {
  const id = await served.submit("make_later", { bytes, how });
  expect((await served.ended("make_later", id)).status).toBe("success");
  return `/make_later/get?task_id=${id}`;
};

describe("a large result", () => {
  it.each(["stream", "path", "memory"])("is what the function gave, from a %s", async (how) => {
    const expected = await generated(3 * MEBIBYTE + 17);
    const answer = await served.get(await make(expected.length, how));
    expect(answer.body.equals(expected)).toBe(true);
    expect(answer.headers.get("content-type")).toBe("application/x-made");
    expect(answer.headers.get("content-disposition")).toContain("made.bin");
    const called = await served.post("/make", { bytes: expected.length, how });
    expect(called.body.equals(expected)).toBe(true);
  });

  it("is given in parts to curl, which goes on where it stopped", async () => {
    const expected = await generated(2 * MEBIBYTE);
    const url = served.origin + (await make(expected.length));
    for (const [range, start, end] of [
      ["0-0", 0, 1],
      ["1000000-1000009", 1_000_000, 1_000_010],
      ["2000000-", 2_000_000, expected.length],
      ["-7", expected.length - 7, expected.length],
      ["0-99999999", 0, expected.length],
    ] as const) {
      const part = await curl("-r", range, url);
      expect(part.equals(expected.subarray(start, end)), range).toBe(true);
    }
    const path = join(folder, "continued");
    await curl("-r", "0-99999", "-o", path, url);
    await curl("-C", "-", "-o", path, url);
    expect((await curl(`file://${path}`)).equals(expected)).toBe(true);
  });

  it("keeps to RFC 9110 in its conditions and ranges, as small ones do", async () => {
    const makeSmall = async (size: number): Promise<string> => {
      const small = await served.submit("small", { only: size });
      await served.ended("small", small);
      return `/small/get?task_id=${small}`;
    };
    const etags = new Set<string>();
    for (const [path, size] of [
      [await make(MEBIBYTE), MEBIBYTE],
      [await makeSmall(1_000), 1_000],
      [await makeSmall(31), 31],
      [await makeSmall(31), 31],
    ] as const) {
      const whole = await served.get(path);
      const etag = whole.headers.get("etag") ?? "";
      const digest = createHash("sha256").update(whole.body).digest("base64url");
      const small = `${new URLSearchParams(path.split("?")[1]).get("task_id")}-${size}`;
      expect(etag).toBe(`"${size === MEBIBYTE ? digest : small}"`);
      etags.add(etag);
      expect(whole.headers.get("accept-ranges")).toBe("bytes");
      const head = await served.fetch(path, { method: "HEAD" });
      expect([head.status, head.headers.get("content-length"), head.headers.get("etag")]).toEqual([
        200,
        String(size),
        etag,
      ]);
      expect(head.body.length).toBe(0);
      for (const validator of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
        const unchanged = await served.get(path, { "if-none-match": validator });
        expect([unchanged.status, unchanged.body.length]).toEqual([304, 0]);
        expect(unchanged.headers.get("etag")).toBe(etag);
      }
      expect((await served.get(path, { "if-none-match": '"other"' })).status).toBe(200);
      const part = await served.get(path, { range: "bytes=10-19", "if-range": etag });
      expect([part.status, part.headers.get("content-range"), part.body.length]).toEqual([
        206,
        `bytes 10-19/${size}`,
        10,
      ]);
      const ignored: Record<string, string>[] = [
        { range: "bytes=10-19", "if-range": '"other"' },
        { range: "bytes=0-1,5-6" },
        { range: "bytes=9-3" },
        { range: "lines=1-2" },
      ];
      for (const headers of ignored) {
        const answer = await served.get(path, headers);
        expect([answer.status, answer.body.length], JSON.stringify(headers)).toEqual([200, size]);
      }
      for (const range of [`bytes=${size}-`, "bytes=-0"]) {
        const refused = await served.get(path, { range });
        expect([refused.status, refused.headers.get("content-range")]).toEqual([
          416,
          `bytes */${size}`,
        ]);
        expect(refusal(refused).reason).toBe("REQUEST_INVALID");
      }
    }
    expect(etags.size).toBe(4);
  });

  it("that is text or JSON comes as such, and to those who cannot stream within a message", async () => {
    const text = await served.submit("text", { length: 1_000_000 });
    const answer = await served.result("text", text);
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(answer.text).toBe('ü"'.repeat(500_000));
    const value = await served.get(`/api/v1/tasks/${text}/result`);
    expect((value.json as { value: string }).value).toBe(answer.text);
    const numbers = await served.submit("numbers", { count: 1_000_000 });
    const all = await served.result("numbers", numbers);
    expect(all.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect((all.json as number[]).length).toBe(1_000_000);
    const tooLarge = await served.get(`/api/v1/tasks/${numbers}/result`);
    expect(refusal(tooLarge)).toMatchObject({
      reason: "RESULT_TOO_LARGE",
      code: "out_of_range",
      message: expect.stringContaining(`GET /numbers/get?task_id=${numbers}`),
    });
  });

  it("closes its source when the caller goes away", async () => {
    const path = await make(20 * MEBIBYTE);
    const req = get(served.origin + path);
    const [res] = await once(req, "response");
    await once(res, "readable");
    expect(openBlobs()).toBe(1);
    req.destroy();
    await expect.poll(openBlobs).toBe(0);
  });
});

/** How many blobs this process has open. */
function openBlobs(): number {
  return readdirSync("/proc/self/fd").filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith(`${database}-blobs/`);
    } catch {
      return false;
    }
  }).length;
}
