import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TaskService } from "../../../gen/tessera/v1/task_pb.js";
import { databaseUrl } from "../../storage/postgres/databases.ts";
import { refusal } from "./refusal.ts";
import { type Served, type Shown, serve } from "./served.ts";

const MEBIBYTE = 1 << 20;
const LARGE = Buffer.alloc(5 * MEBIBYTE, "large");

const DATABASES: readonly (readonly [string, (folder: string) => string | Promise<string>])[] = [
  ["SQLite", (folder) => join(folder, "tasks.db")],
  ["Postgres", () => databaseUrl()],
];

describe.each(DATABASES)("the arguments of a task on %s", (_name, openDatabase) => {
  let folder: string;
  let calls: Served;
  let files: Served;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "tessera-arguments-"));
    const database = await openDatabase(folder);
    calls = await serve("calls", { database, jsonBodyBytes: 8 * MEBIBYTE });
    files = await serve("files", { database: join(folder, "files.db") });
  });
  afterAll(async () => {
    await calls.stop();
    await files.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("are what was submitted, in any state of the task", async () => {
    const given = { text: "ü\u202e<script>", times: 2 };
    const id = await calls.submit("repeat_later", given);
    const path = `/repeat_later/arguments?task_id=${id}`;
    const expected = { arguments: given, files: [] };
    expect((await calls.get(path)).json).toEqual(expected);
    await calls.result("repeat_later", id);
    const { json, headers } = await calls.get(path);
    expect(json).toEqual(expected);
    expect(headers.get("content-type")).toMatch(/^application\/json/);
    expect((await calls.get(`/api/v1/tasks/${id}/arguments`)).json).toEqual(expected);
    const etag = headers.get("etag") ?? "";
    expect((await calls.get(path, { "if-none-match": etag })).status).toBe(304);
  });

  it("are gone with the task", async () => {
    const id = await calls.submit("brief", {});
    await calls.result("brief", id);
    const path = `/brief/arguments?task_id=${id}`;
    const asked = async () => refusalReason(await calls.get(path));
    await expect.poll(asked, { timeout: 50_000, interval: 200 }).toBe("TASK_NOT_FOUND");
  });

  it("list their files, which are given as they came, whole and in parts", async () => {
    const form = new FormData();
    form.set("file", new File([LARGE], "grüße.html", { type: "text/html" }));
    form.append("others", new File(["small"], "small.txt", { type: "text/plain" }));
    form.set("title", "0");
    const submitted = await files.send("/digest_later/submit", form);
    const { task_id: id } = submitted.json as Shown;
    const path = `/digest_later/arguments?task_id=${id}`;
    expect((await files.get(path)).json).toEqual({
      arguments: { file: 0, others: [1], title: "0" },
      files: [
        {
          argument: "file",
          filename: "grüße.html",
          content_type: "text/html",
          size: LARGE.length,
        },
        { argument: "others", filename: "small.txt", content_type: "text/plain", size: 5 },
      ],
    });
    const large = await files.get(`${path}&file=0`);
    expect(large.body.equals(LARGE)).toBe(true);
    expect(large.headers.get("content-disposition")).toContain("attachment");
    expect(large.headers.get("content-security-policy")).toBe("sandbox");
    const part = await files.get(`${path}&file=0`, { range: "bytes=5-9" });
    expect({ status: part.status, text: part.text }).toEqual({ status: 206, text: "large" });
    expect((await files.get(`${path}&file=1`)).text).toBe("small");
    const other = refusal(await files.get(`${path}&file=2`));
    expect(other).toMatchObject({ status: 400, reason: "REQUEST_INVALID" });
    expect((await files.get(`${path}&file=x`)).status).toBe(400);

    const { getTaskArgumentFile } = createClient(
      TaskService,
      createConnectTransport({ baseUrl: files.origin, httpVersion: "1.1" }),
    );
    await expect(getTaskArgumentFile({ taskId: id, file: 0 })).rejects.toThrow(
      `fetch it over HTTP, GET ${path}&file=0`,
    );
  });

  it("that no message can hold are read over HTTP", async () => {
    const value = "x".repeat(5 * MEBIBYTE);
    const id = await calls.submit("repeat_later", { text: value });
    const path = `/repeat_later/arguments?task_id=${id}`;
    expect((await calls.get(path)).json).toEqual({ arguments: { text: value }, files: [] });
    const refused = refusal(await calls.get(`/api/v1/tasks/${id}/arguments`));
    expect(refused).toMatchObject({ reason: "RESULT_TOO_LARGE" });
  });
});

function refusalReason(answer: Parameters<typeof refusal>[0]): unknown {
  return answer.status === 200 ? undefined : refusal(answer).reason;
}
