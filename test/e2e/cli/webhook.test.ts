/** Webhooks of a deployment at the command line, as a developer and as a program read it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Received, Receiver } from "../../hosting/webhooks/receiver.ts";
import { Folder } from "../start/platform.ts";
import { type Scene, scene } from "./platform-person.ts";

let at: Scene;
let receiver: Receiver;
const folder = new Folder();
beforeAll(async () => {
  at = await scene({ env: { TESSERA_ALLOW_EGRESS: "127.0.0.1" } });
  receiver = await Receiver.start();
  const path = join(folder.path, "service.js");
  writeFileSync(
    path,
    `import { service, task } from "tessera-platform";
export default service({ name: "words", endpoints: { word: task({}, () => "sesame") } });`,
  );
  expect(await run("deploy", path)).toMatchObject({ code: 0 });
});
afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await at[Symbol.asyncDispose]();
  folder[Symbol.dispose]();
});

const run = (...args: readonly string[]) =>
  at.ada.run(["webhook", ...args].slice(args[0] === "deploy" ? 1 : 0));

it("a webhook is made, tested, sent again, rotated, changed and deleted", async () => {
  const created = await run("create", "words", "app", receiver.url, "--json");
  expect(created).toMatchObject({ code: 0 });
  const { secret, webhook } = JSON.parse(created.stdout);
  expect(webhook).toMatchObject({ name: "app", url: receiver.url });
  const tested = await run("test", "words", "app");
  expect(tested).toMatchObject({ code: 0 });
  expect(tested.stdout).toMatch(/^state +delivered$/m);
  const [{ body, headers }] = (await receiver.has(1)) as [Received];
  expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
    type: "webhook.test",
    data: { organization: "acme", deployment: "words" },
  });

  receiver.answer = (res) => res.writeHead(503).end("busy");
  const refused = await run("test", "words", "app");
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain("it was not delivered: 503 busy");
  const listed = await run("deliveries", "words", "--state", "waiting", "--json");
  const { deliveries } = JSON.parse(listed.stdout);
  expect(deliveries).toMatchObject([{ webhook: "app", answers: [{ status: 503, text: "busy" }] }]);
  receiver.answer = (res) => res.writeHead(204).end();
  const again = await run("redeliver", "words", deliveries[0].id);
  expect(again).toMatchObject({ code: 0 });
  const all = await run("deliveries", "words");
  expect(all.stdout).toMatch(/^test-\S+ +app +webhook\.test +delivered/m);

  const rotated = await run("rotate", "words", "app", "--grace", "1h");
  expect(rotated.stdout).toMatch(/secret {2}whsec_\S+/);
  expect(rotated.stdout).not.toContain(secret);
  const updated = await run("update", "words", "app", "--event", "task.failure", "--disable");
  expect(updated.stdout).toMatch(/^state +disabled: disabled by ada@example\.com$/m);
  const disabled = await run("test", "words", "app");
  expect(disabled.stderr).toContain("tessera webhook update words app --enable");
  expect(await run("update", "words", "app", "--enable")).toMatchObject({ code: 0 });
  const table = await run("list", "words");
  expect(table.stdout).toMatch(/^app +http:\S+ +task\.failure +ok +0/m);
  expect(await run("delete", "words", "app", "--yes")).toMatchObject({ code: 0 });
  expect((await run("list", "words")).stderr).toContain("No webhooks: tessera webhook create");
});

it("what cannot be is said, with what to do", async () => {
  const event = await run("create", "words", "app", receiver.url, "--event", "task.progress");
  expect(event.stderr).toContain("task.success, task.failure, task.cancelled");
  const address = await run("create", "words", "app", "http://10.0.0.1/");
  expect(address.stderr).toContain("is a private address");
  const nothing = await run("update", "words", "app");
  expect(nothing.stderr).toContain("nothing would change");
  const unknown = await run("test", "words", "gone");
  expect(unknown.stderr).toContain('deployment words has no webhook "gone"');
});
