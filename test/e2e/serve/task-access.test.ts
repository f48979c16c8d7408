/** Accesses of tasks on `tessera serve`, whose one secret is its shared token. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { createClient, TaskNotFoundError } from "../../../src/client/index.ts";
import { refusal } from "./refusal.ts";
import { type Served, serve } from "./served.ts";

const TOKEN = "a-token-for-tests";
const BEARER = { authorization: `Bearer ${TOKEN}` };

let served: Served;
beforeAll(async () => {
  served = await serve("calls", { token: TOKEN });
});
afterAll(() => served.stop());

async function made(of: Served = served, headers: Record<string, string> = BEARER) {
  const submitted = await of.post("/sum/submit", { numbers: [1, 2] }, headers);
  const { task_id: taskId } = submitted.json as { task_id: string };
  const answer = await of.post(`/sum/access?task_id=${taskId}`, {}, headers);
  expect(answer.status, answer.text).toBe(200);
  return answer.json as { readonly path: string; readonly access: string; readonly url?: string };
}

it("opens the task without the token, at a path that is ready", async () => {
  const { path, url } = await made();
  expect(url).toBeUndefined();
  const answer = await served.get(path);
  expect(answer.text).toContain("event: end");
  expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
  const result = await served.get(path.replace("/events", "/get"));
  expect([result.status, result.text]).toEqual([200, "3"]);
});

it("is what the client makes a URL of", async () => {
  const client = createClient({ url: `${served.origin}/`, token: TOKEN });
  const task = await client.sum?.submit({ numbers: [1, 2] });
  await task?.wait();
  for (const [of, text] of [
    ["events", "event: end"],
    ["status", '"status":"success"'],
    ["get", "3"],
  ] as const) {
    const answer = await fetch((await task?.accessUrl(of)) ?? "");
    expect([of, await answer.text()]).toEqual([of, expect.stringContaining(text)]);
  }
  const unknown = client.sum?.task("019aa51c-0000-7000-8000-000000000000");
  await expect(unknown?.accessUrl("events")).rejects.toThrow(TaskNotFoundError);
});

it("opens nothing else, and not with a token that is not valid", async () => {
  const { path, access } = await made();
  const other = await made();
  for (const [url, reason, init] of [
    [path.replace("/events", "/cancel"), "ACCESS_DENIED", { method: "POST" }],
    [path.replace("/events", "/arguments"), "ACCESS_DENIED", {}],
    [path.replace(access, other.access), "ACCESS_DENIED", {}],
    [path.slice(0, -1), "TOKEN_INVALID", {}],
    [path, "TOKEN_INVALID", { headers: { authorization: "Bearer wrong" } }],
  ] as const) {
    expect([url, refusal(await served.fetch(url, init)).reason]).toEqual([url, reason]);
  }
});

it("is read by another process with the same token, and by none with another", async () => {
  const { path } = await made();
  for (const [token, reason] of [
    [TOKEN, "TASK_NOT_FOUND"],
    ["another-token", "TOKEN_INVALID"],
  ] as const) {
    await using next = await serve("calls", { token });
    expect(refusal(await next.get(path)).reason).toBe(reason);
  }
});

it("keeps a result to its reader, whatever the function says of it", async () => {
  await using heads = await serve("heads");
  const taskId = await heads.submit("shared", {});
  const token = await heads.result("shared", taskId);
  expect(token.headers.get("cache-control")).toBe("public, max-age=3600");
  const made = await heads.post("/shared/access", { task_id: taskId });
  const { path } = made.json as { readonly path: string };
  const { headers } = await heads.get(path.replace("/events", "/get"));
  expect(headers.get("cache-control")).toBe("no-store");
  expect(headers.get("referrer-policy")).toBe("no-referrer");
  expect(headers.get("x-model")).toBe("v2");
});

it("works where no token is needed, too, so that a page need not know", async () => {
  await using open = await serve("calls");
  const { path, access } = await made(open, {});
  expect((await open.get(path)).text).toContain("event: end");
  const other = await made(open, {});
  expect(refusal(await open.get(path.replace(access, other.access))).reason).toBe("ACCESS_DENIED");
});
