/** Secrets of a deployment that are listed, set anew and deleted without new code. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";

import { memberToken } from "../start/member.ts";
import { Folder } from "../start/platform.ts";
import { Person } from "./person.ts";
import { type Scene, scene } from "./platform-person.ts";

let at: Scene;
const folder = new Folder();
const grace = new Person();
beforeAll(async () => {
  at = await scene();
  await at.logIn(grace, await memberToken(at.platform, at.adaCookie, "grace@example.com"));
  const path = file(
    "service.js",
    `import { api, service } from "tessera-platform";
export default service({ name: "words", endpoints: { word: api({}, () => process.env.KEY + " " + process.env.OTHER) } });`,
  );
  const deployed = await run("deploy", path, "--secret", `KEY=@${file("key", "sesame\n")}`);
  expect(deployed).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  grace[Symbol.dispose]();
  folder[Symbol.dispose]();
});

const run = (...args: readonly string[]) => at.ada.run(args);

function file(name: string, content: string): string {
  const path = join(folder.path, name);
  writeFileSync(path, content);
  return path;
}

async function call(): Promise<Response> {
  return fetch(`${at.platform.url}/word`, {
    method: "POST",
    headers: { "content-type": "application/json", "tessera-deployment": "acme/words" },
    body: "{}",
  });
}

/** Calls until the answer is this one; none of the calls fails. */
async function answers(expected: string): Promise<void> {
  for (let answer: unknown; answer !== expected; ) {
    const res = await call();
    expect(res.status).toBe(200);
    answer = await res.json();
  }
}

it("a secret is set anew by standard input, and workers with it replace the others without a failed call", async () => {
  await answers("sesame undefined");
  const set = await at.ada.run(["secret", "set", "words", "KEY"], { input: "barley\n" });
  expect(set).toMatchObject({ code: 0 });
  expect(set.stderr).toContain("Set KEY of words");
  expect(set.stdout + set.stderr).not.toContain("barley");
  // The command has waited until a worker with it has taken over.
  expect(await (await call()).json()).toBe("barley undefined");
  const listed = await run("secret", "list", "words");
  expect(listed.stdout).toMatch(/^KEY +\S+.* +ada@example\.com/m);
  const shown = await run("secret", "list", "words", "--json");
  expect(JSON.parse(shown.stdout)).toMatchObject({ secrets: [{ name: "KEY" }] });
  expect(shown.stdout).not.toContain("barley");
  const audit = await run("audit", "list");
  expect(audit.stdout).toMatch(
    / deployment\.update_secrets +ada@example\.com +words .*secrets=KEY/,
  );
});

it("what somebody sets who may not use secrets is told, and given alone until it is confirmed", async () => {
  const other = file("other", "mine");
  const set = await grace.run(["secret", "set", "words", `OTHER=@${other}`]);
  expect(set).toMatchObject({ code: 0 });
  expect(set.stderr).toContain("runs without the secret KEY");
  await answers("undefined mine");
  const listed = await run("secret", "list", "words");
  expect(listed.stdout).toMatch(/^KEY .*withheld until confirmed/m);
  expect(await run("deployment", "confirm-secrets", "words", "--yes")).toMatchObject({ code: 0 });
  await answers("barley mine");
});

it("secrets are deleted once that is confirmed, and one that is not there is an error", async () => {
  const unknown = await run("secret", "delete", "words", "NOPE", "--yes");
  expect(unknown).toMatchObject({ code: 4 });
  expect(unknown.stderr).toContain("words has no secret NOPE");
  expect(await run("secret", "delete", "words", "OTHER")).toMatchObject({ code: 2 });
  expect(await run("secret", "delete", "words", "OTHER", "--yes")).toMatchObject({ code: 0 });
  await answers("barley undefined");
});

it("values on the command line are refused, and not repeated", async () => {
  const refused = await run("secret", "set", "words", "KEY=swordfish");
  expect(refused).toMatchObject({ code: 2 });
  expect(refused.stderr).toContain("as NAME=@file");
  expect(refused.stderr).not.toContain("swordfish");
});

it("over HTTP, two people who change secrets at once are both told, and nothing is a change without a name", async () => {
  const url = "/api/v1/deployments/words/secrets";
  const change = async (body: object) => {
    const res = await fetch(at.platform.url + url, {
      method: "PATCH",
      headers: { ...at.adaCookie, "content-type": "application/json", origin: at.platform.url },
      body: JSON.stringify(body),
    });
    return { status: res.status, json: (await res.json()) as Record<string, unknown> };
  };
  const first = await change({ secrets: { KEY: "one" } });
  expect(first.status).toBe(200);
  const { version } = first.json as { version: number };
  expect((await change({ secrets: { KEY: "two" }, version })).status).toBe(200);
  const late = await change({ secrets: { KEY: "three" }, version });
  expect(late.status).toBe(409);
  expect(JSON.stringify(late.json)).toContain("VERSION_CONFLICT");
  await answers("two undefined");
  expect((await change({})).status).toBe(400);
  expect((await change({ secrets: { "NOT A NAME": "x" } })).status).toBe(400);
  expect((await change({ secrets: { NODE_OPTIONS: "x" } })).status).toBe(400);
});
