import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { get } from "./calling.ts";
import { Program } from "./program.ts";

const SERVICE = fileURLToPath(new URL("../../fixtures/services/zod-functions.ts", import.meta.url));

it("calls are logged at debug, and not where only more is asked for", {
  timeout: 60_000,
}, async () => {
  for (const level of ["debug", "info"]) {
    const { program, url } = await Program.serve([SERVICE], { env: { TESSERA_LOG_LEVEL: level } });
    await using _ = program;
    await get(`${url}/livez?token=hunter2`);
    if (level === "debug") {
      await program.says("stderr", /"msg":"GET \/livez 200 [\d.]+ ms [\da-f]{32}/);
    }
    const { stderr } = await program.stop();
    expect(stderr.includes("/livez"), level).toBe(level === "debug");
    expect(stderr).not.toContain("hunter2");
  }
});

it("the access of a task is in no line, however much is logged and whatever is answered", {
  timeout: 60_000,
}, async () => {
  const env = { TESSERA_LOG_LEVEL: "debug", TESSERA_TOKEN: "a-token-of-this-test" };
  const { program, url } = await Program.serve([SERVICE], { env });
  await using _ = program;
  const headers = {
    authorization: `Bearer ${env.TESSERA_TOKEN}`,
    "content-type": "application/json",
  };
  const post = async (path: string, body: object) => {
    const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return (await answer.json()) as { readonly task_id: string; readonly path: string };
  };
  const { task_id: taskId } = await post("/add/submit", { numbers: [1, 2] });
  const { path } = await post("/add/access", { task_id: taskId });
  const paths = [
    ...[path, path.replace("/events", "/status"), path.replace("/events", "/get")],
    // Refused: altered, twice, another task, another path, none at all, a broken one.
    ...[`${path}x`, `${path}&${path.split("&")[1]}`, path.replace(/task_id=[^&]*/, "task_id=x")],
    ...[path.replace("/events", "/arguments"), path.replace(/.*\?/, "/nothing?"), `/%zz${path}`],
  ];
  const texts = [];
  for (const each of paths) {
    for (const method of ["GET", "POST"]) {
      const answer = await fetch(url + each, { method });
      texts.push(await answer.text());
    }
  }
  texts.push(await (await fetch(`${url}/metrics`, { headers })).text());
  await program.says("stderr", /"msg":"GET \/metrics 200/);
  const { stderr, stdout } = await program.stop();
  expect(stderr).toContain("GET /add/events 200");
  for (const text of [...texts, stderr, stdout]) {
    expect(text).not.toContain("tsra_");
  }
});
