/** Usage from a command line: what docs/usage.md shows works as it stands there. */
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTesseraClient } from "../../../src/client/index.ts";
import { blocksOf } from "../docs/blocks.ts";
import { until } from "../hosting/world.ts";
import { Folder } from "../start/platform.ts";
import { json, type Scene, scene } from "./platform-person.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const block = blocksOf("docs/usage.md");

let at: Scene;
const folder = new Folder();
beforeAll(async () => {
  at = await scene();
  symlinkSync(join(ROOT, "node_modules"), join(folder.path, "node_modules"));
  writeFileSync(join(folder.path, "service.ts"), block("ts"));
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

/** Runs a line as it stands in the document, in the folder of the service. */
function type(line: string) {
  const words = line.split(" ").filter((word) => word !== "npx" && word !== "tessera");
  return at.ada.run(words.map((word) => (word === "service.ts" ? join(folder.path, word) : word)));
}

it("the commands of the page count what a task used, for its token", async () => {
  for (const line of block("sh").trim().split("\n")) {
    const ran = await type(line);
    expect(ran, `${line}: ${ran.stderr}`).toMatchObject({ code: 0 });
    if (line.includes(" submit ")) {
      const of = ["write", ran.stdout.trim(), "--deployment", "writer"];
      expect(await at.ada.run(["task", "wait", ...of])).toMatchObject({ code: 0 });
    }
  }
  const by = (...keys: string[]) => at.ada.run(["usage", "--by", keys.join(), "--json"]);
  const [used] = json(await by("endpoint", "token")).sums as Record<string, unknown>[];
  expect(used).toMatchObject({
    ...{ deployment: "", endpoint: "write", token: { name: "ada's laptop" } },
    ...{ calls: "0", tasks: "1", gpu_seconds: 0, bytes_in: '{"prompt":"hello"}'.length.toString() },
    ...{ bytes_out: '"HELLO"'.length.toString() },
    units: { prompt_tokens: 5, completion_tokens: 5 },
  });
  const shown = await at.ada.run(["usage"]);
  expect(shown.stdout).toMatch(/^DEPLOYMENT +CALLS +TASKS +RUN +IN +OUT +COMPLETION_TOKENS/);
  const csv = await at.ada.run(["usage", "--by", "day,token", "--csv"]);
  expect(csv.stdout.split("\r\n")[0]).toBe(
    "day,token,token_id,calls,tasks,run_seconds,gpu_seconds,bytes_in,bytes_out,completion_tokens,prompt_tokens",
  );
  expect(csv.stdout).toContain(`"ada's laptop"`);
});

it("the commands of the page keep budgets, of which a spent one refuses over every protocol", async () => {
  const { platform, adaCookie } = at;
  const { value: token } = await platform.createToken(adaCookie, {
    ...{ name: "caller", all_deployments: true },
    access: ["developer_operations", "protected_endpoint"],
  });
  const url = `${platform.url}/write/submit`;
  const headers = {
    ...{ authorization: `Bearer ${token}`, "tessera-deployment": "acme/writer" },
    "content-type": "application/json",
  };
  const post = () => fetch(url, { method: "POST", headers, body: '{"prompt":"hello"}' });
  const keyed = (key: string) =>
    fetch(url, {
      method: "POST",
      headers: { ...headers, "idempotency-key": key },
      body: '{"prompt":"hello"}',
    });
  const accepted = (await (await keyed("before")).json()) as { readonly task_id: string };
  const retried = { deployment: "acme/writer", taskId: accepted.task_id, idempotencyKey: "again" };
  const connect = createTesseraClient({ url: platform.url, token });
  await connect.tasks.getTaskResult({ ...retried, wait: { seconds: 30n, nanos: 0 } });
  await connect.tasks.retryTask(retried);
  const request = { deployment: "acme/writer", endpoint: "write" };
  for (const line of block("sh", 1).trim().split("\n")) {
    const ran = await type(line);
    expect(ran, `${line}: ${ran.stderr}`).toMatchObject({ code: 0 });
    if (line.includes("create trial")) {
      expect(ran.stdout).toMatch(/^bounds +deployment writer$/m);
      // The use before counts. Nodes hear of a budget within a second.
      const refused = await until(post, ({ status }) => status === 429);
      expect(refused.headers.get("retry-after")).toMatch(/^\d{1,4}$/);
      expect(refused.headers.get("ratelimit-policy")).toBe('"trial";q=5;w=86400');
      expect(refused.headers.get("ratelimit")).toMatch(/^"trial";r=0;t=\d{1,5}$/);
      expect(await refused.json()).toMatchObject({ code: "resource_exhausted" });
      const failure = await connect.tasks.submitTask(request).catch(ConnectError.from);
      expect(failure).toMatchObject({ code: Code.ResourceExhausted });
      expect((failure as ConnectError).metadata.get("ratelimit")).toContain('"trial";r=0;t=');
      // What was accepted before costs nothing new.
      const repeat = await keyed("before");
      expect(repeat.headers.get("idempotent-replayed")).toBe("true");
      expect(await repeat.json()).toMatchObject({ task_id: accepted.task_id });
      expect((await keyed("after")).status).toBe(429);
      const input = { case: "arguments", value: { prompt: "hello" } } as const;
      const { results } = await connect.tasks.submitTasks({
        deployment: "acme/writer",
        tasks: ["before", "after", ""].map((idempotencyKey) => ({
          ...{ endpoint: "write", input, idempotencyKey },
        })),
      });
      expect(results.map(({ outcome }) => outcome)).toMatchObject([
        { case: "task", value: { taskId: accepted.task_id } },
        { case: "error", value: { reason: "BUDGET_SPENT" } },
        { case: "error", value: { reason: "BUDGET_SPENT" } },
      ]);
      expect((await connect.tasks.retryTask(retried)).retryOf).toBe(accepted.task_id);
      const another = { ...retried, idempotencyKey: "another" };
      const refusedRetry = await connect.tasks.retryTask(another).catch(ConnectError.from);
      expect(refusedRetry).toMatchObject({ code: Code.ResourceExhausted });
      const word = ["task", "submit", "write", "prompt=hello", "--deployment", "writer"];
      const said = await at.ada.run(word);
      expect(said.code).not.toBe(0);
      expect(said.stderr).toContain("the budget trial of 5 prompt_tokens a day is spent");
    }
    if (line.includes(" list")) {
      expect(ran.stdout).toMatch(/^trial +prompt_tokens +\d+ +5 +spent +deployment writer /m);
    }
    if (line.includes(" update ")) {
      await until(post, ({ status }) => status === 202);
    }
  }
  const { budgets } = json(await at.ada.run(["budget", "list", "--json"]));
  expect(budgets).toMatchObject([{ name: "trial", amount: 1_000, version: 2 }]);
  for (const [words, message] of [
    [["update", "gpus", "1"], 'there is no budget "gpus"'],
    [["update", "trial", "--", "-1"], 'the amount "-1" is no number from 0 on'],
    [["create", "Ünit", "calls", "1"], "must be 1 to 63 lower case letters"],
    [["create", "a", "gpu-seconds", "1"], "must be calls, tasks"],
    [["create", "trial", "calls", "1"], "there is a budget trial"],
  ] as const) {
    const refused = await at.ada.run(["budget", ...words]);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(message);
  }
});

it("says what is wrong with what it is asked", async () => {
  const wrong = await at.ada.run(["usage", "--by", "year"]);
  expect(wrong).toMatchObject({ code: 2 });
  expect(wrong.stderr).toContain('--by "year" is not one of day, deployment, endpoint, token');
  for (const [flags, said] of [
    [["--from", "2026-02-30"], "2026-02-30 is no day"],
    [["--from", "2026-02-03", "--to", "2026-02-01"], "is after the end day"],
    [["--from", "2020-01-01"], "more than 400 days"],
  ] as const) {
    const refused = await at.ada.run(["usage", ...flags]);
    expect(refused.code).not.toBe(0);
    expect(refused.stderr).toContain(said);
  }
  const none = await at.ada.run(["usage", "--to", "2026-01-02"]);
  expect(none.stderr).toContain("Nothing was used from 2025-12-04 to 2026-01-02");
});
