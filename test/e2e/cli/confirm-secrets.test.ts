import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { memberToken } from "../start/member.ts";
import { Person } from "./person.ts";
import { json, type Scene, scene } from "./platform-person.ts";

const WARNING =
  "warning: revision 2 runs without the secret KEY, because its code or its variables are from somebody who may not use them: an admin reviews it and gives them with tessera deployment confirm-secrets words\n";

let at: Scene;
let folder: string;
const grace = new Person();
beforeAll(async () => {
  at = await scene();
  folder = mkdtempSync(join(tmpdir(), "tessera-test-confirm-"));
  await at.logIn(grace, await memberToken(at.platform, at.adaCookie, "grace@example.com"));
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  grace[Symbol.dispose]();
  rmSync(folder, { recursive: true });
});

const run = (...args: readonly string[]) => at.ada.run(args);

function service(word: string): string {
  const path = join(folder, "service.js");
  writeFileSync(
    path,
    `import { api, service } from "tessera-platform";
export default service({ name: "words", endpoints: { word: api({}, () => "${word} " + process.env.KEY) } });`,
  );
  return path;
}

async function word(): Promise<unknown> {
  const res = await fetch(`${at.platform.url}/word`, {
    method: "POST",
    headers: { "content-type": "application/json", "tessera-deployment": "acme/words" },
    body: "{}",
  });
  return res.json();
}

it("secrets are withheld from what a member deploys, who is told so, until an admin confirms it", async () => {
  const key = join(folder, "key");
  writeFileSync(key, "sesame\n");
  expect(await run("deploy", service("one"), "--secret", `KEY=@${key}`)).toMatchObject({ code: 0 });
  expect(await word()).toBe("one sesame");
  const nothing = await run("deployment", "confirm-secrets", "words");
  expect(nothing).toMatchObject({ code: 0, stderr: "Nothing is withheld from words\n" });

  const env = ["--env", "URL=http://elsewhere"];
  const deployed = await grace.run(["deploy", service("two"), ...env]);
  expect(deployed).toMatchObject({ code: 0 });
  expect(deployed.stderr).toContain(WARNING);
  expect(await word()).toBe("two undefined");
  expect((await run("deployment", "list")).stdout).toMatch(/^words +ready, secrets withheld +2 /m);
  expect((await run("deployment", "revisions", "words")).stdout).toMatch(
    /^2 .* serving, not confirmed for secrets\n1 .*example\.com\n$/m,
  );
  const got = await run("deployment", "get", "words");
  expect(got.stdout).toMatch(/^withheld +KEY$/m);
  expect(got.stderr).toBe(WARNING);
  expect((await run("deployment", "logs", "words")).stdout).toMatch(
    / r2 \S+ \* it runs without the secret KEY: /,
  );

  const asked = await run("deployment", "confirm-secrets", "words");
  expect(asked.code).toBe(2);
  expect(asked.stderr).toMatch(/^revision +2, by grace@example\.com at 2/m);
  expect(asked.stderr).toMatch(/^code +not confirmed$/m);
  expect(asked.stderr).toMatch(/^variables +URL=http:\/\/elsewhere$/m);
  const refused = await grace.run(["deployment", "confirm-secrets", "words", "--yes"]);
  expect(refused.code).not.toBe(0);
  expect(refused.stderr).toContain("somebody who may use the secrets of deployments");
  expect(await word()).toBe("two undefined");

  const args = ["deployment", "confirm-secrets", "words", "--yes", "-o", "json"];
  expect(json(await run(...args))).toMatchObject({ secrets_withheld: [] });
  await expect.poll(word).toBe("two sesame");
  const { stdout } = await run("audit", "list");
  expect(stdout).toMatch(/ deployment\.confirm_secrets +ada@example\.com +words .* secrets=KEY /);
});
