/** Alerts at the command line: the commands of docs/alerts.md, as they stand there, and bad ones. */
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Received, Receiver } from "../../hosting/webhooks/receiver.ts";
import { ROOT } from "../clients/python-environment.ts";
import { type Scene, scene } from "./platform-person.ts";

let at: Scene;
let receiver: Receiver;
beforeAll(async () => {
  at = await scene({ env: { TESSERA_ALLOW_EGRESS: "127.0.0.1" } });
  receiver = await Receiver.start();
});
afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await at[Symbol.asyncDispose]();
});

const run = (...args: readonly string[]) => at.ada.run(["alert", ...args]);

/** The commands of the page, in its order. */
function commands(): string[][] {
  const page = readFileSync(`${ROOT}/docs/alerts.md`, "utf8");
  return [...page.matchAll(/^npx tessera alert (.*)$/gm)].map(([, words = ""]) =>
    words.replace("https://example.com/alerts", receiver.url).split(" "),
  );
}

/** A delivery that the page sends again. */
const DELIVERY = "019aa51c-0000-7000-8000-000000000000-0000-firing-app";

/** The id of the one that there is. */
async function delivery(): Promise<string> {
  const { stdout } = await run("receiver", "deliveries", "--output", "json");
  return JSON.parse(stdout).deliveries[0].id;
}

it("the commands of the page work in its order, and their results are listed", async () => {
  const done = new Map<string, string>();
  for (const words of commands()) {
    const given = words.includes(DELIVERY) ? await delivery() : "";
    const answer = await run(...words.map((word) => (word === DELIVERY ? given : word)));
    expect(answer, words.join(" ")).toMatchObject({ code: 0 });
    done.set(words.join(" "), answer.stdout);
  }
  const created = done.get(`receiver create app webhook ${receiver.url}`) ?? "";
  const [, secret = ""] = /secret {2}(whsec_\S+)/.exec(created) ?? [];
  const [{ body, headers }] = (await receiver.has(1)) as [Received];
  expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject({
    type: "alert.test",
    data: { organization: "acme", rule: "app" },
  });
  expect(done.get("receiver test app")).toMatch(/^state +delivered$/m);
  expect(done.get("silence slow")).toMatch(/silenced until/);
  expect(done.get("silence slow --end")).not.toMatch(/silenced/);
  expect(done.get("receiver deliveries --receiver app")).toMatch(/app +alert\.test +delivered/);
  expect(done.get(`receiver redeliver ${DELIVERY}`)).toMatch(/^state +delivered$/m);
  // To the address that it has by then, under the id that it had, by the secret that it has now.
  const [first, again] = (await receiver.has(2)) as [Received, Received];
  expect([first.path, again.path]).toEqual(["/", "/2"]);
  expect(again.headers["webhook-id"]).toBe(first.headers["webhook-id"]);
  const [, rotated = ""] =
    /secret {2}(whsec_\S+)/.exec(done.get("receiver rotate app") ?? "") ?? [];
  const verify = (by: string) =>
    new Webhook(by).verify(again.body, again.headers as Record<string, string>);
  expect(verify(rotated)).toEqual(verify(secret));
  const rules = (await run("list")).stdout;
  expect(rules).toMatch(/^failing +more than 5 % of the tasks .* +app +disabled$/m);
  expect(rules).toMatch(/^slow +the oldest task waits for more than 300 s +app chat +/m);
  const receivers = (await run("receiver", "list")).stdout;
  expect(receivers).toMatch(/^chat +slack +https:\/\/hooks\.slack\.com\/ +ok/m);
});

it("what cannot be is said, with what to do", async () => {
  const said = async (...args: readonly string[]) => (await run(...args)).stderr;
  expect(await said("create", "x", "mood")).toContain("oldest-task-waits, failures");
  expect(await said("create", "x", "failures", "--threshold", "101")).toContain("at most 100");
  expect(await said("create", "x", "failures", "--hold", "5s")).toContain("hold");
  expect(await said("create", "x", "failures", "--receiver", "gone")).toContain(
    'there is no receiver of alerts "gone"',
  );
  expect(await said("create", "x", "failures", "--deployment", "gone")).toContain("gone");
  expect(await said("update", "slow")).toContain("nothing would change");
  expect(await said("silence", "gone")).toContain('there is no alert rule "gone"');
  expect(await said("receiver", "create", "y", "webhook", "http://10.0.0.1/")).toContain(
    "is a private address",
  );
  expect(await said("receiver", "create", "y", "mail", "ops@example.com")).toContain("--mail-from");
  expect(await said("receiver", "update", "app", "--address", "http://10.0.0.1/")).toContain(
    "is a private address",
  );
  expect(await said("receiver", "update", "app")).toContain("nothing would change");
  expect(await said("receiver", "redeliver", "gone")).toContain("there is no delivery");
  const off = await run("receiver", "update", "chat", "--disable");
  expect(off.stdout).toMatch(/^state +disabled: disabled by /m);
  expect(await said("receiver", "test", "chat")).toContain("receiver update chat --enable");
  expect(await said("receiver", "delete", "app", "--yes")).toContain("name other receivers");
  expect(await said("create", "disk", "disk-free")).toContain("operator");
  for (const name of ["slow", "failing", "degraded"]) {
    expect(await run("delete", name, "--yes")).toMatchObject({ code: 0 });
  }
  expect(await run("receiver", "delete", "app", "--yes")).toMatchObject({ code: 0 });
  expect(await said("list")).toContain("No alert rules: tessera alert create");
});
