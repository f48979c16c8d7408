/** Each alert rule fires once and clears once, wherever the node is killed that evaluates it. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { AlertMessage } from "../../../src/storage/hosting/alerts.ts";
import type { Storage } from "../../../src/storage/storage.ts";
import { HostingPlatform } from "../../storage/hosting/fixtures.ts";
import { ask, databaseUrl, newSchema, openPostgres } from "../../storage/postgres/databases.ts";
import { openSqlite, TestFolder } from "../../storage/sqlite/databases.ts";

const NODE = fileURLToPath(new URL("./evaluate-minutes.ts", import.meta.url));
const MINUTE_MS = 60_000;
const RULES = ["failures", "worker_restarts"] as const;
/** Rules of each kind. */
const COUNT = 4;

/** Where a node is killed: when it says this for the nth time in its last minute. */
type Kill = readonly ["taken" | "recording" | "done", number];

/** A minute in which rules are true, or are not. */
interface Minute {
  readonly nowMs: number;
  readonly isTrue: boolean;
}

/** Starts a node that evaluates these minutes, and kills it in the last one. */
async function evaluate(
  place: readonly string[],
  minutes: readonly Minute[],
  [word, times]: Kill,
): Promise<void> {
  const child = spawn(process.execPath, [NODE, ...place], { stdio: ["pipe", "pipe", "inherit"] });
  const closed = once(child, "close");
  child.stdin.on("error", () => {});
  for (const { nowMs, isTrue } of minutes) {
    const measured = { failed: isTrue ? 50 : 0, succeeded: 50, restarts: isTrue ? 9 : 0 };
    child.stdin.write(`${JSON.stringify({ nowMs, measured })}\n`);
  }
  let before = minutes.length - 1;
  let said = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    said += before === 0 && line === word ? 1 : 0;
    if (said === times) {
      child.kill("SIGKILL");
      break;
    }
    before -= before > 0 && line === "done" ? 1 : 0;
  }
  await closed;
  expect(said).toBe(times);
}

async function exercise(place: readonly string[], open: () => Promise<Storage>): Promise<void> {
  let nowMs = Date.UTC(2026, 10, 15, 12);
  let key = { organizationId: "", deploymentId: "" };
  {
    await using storage = await open();
    const platform = await HostingPlatform.on(storage);
    platform.nowMs = nowMs;
    await platform.deploy(["one"]);
    const { hosting, organizationId } = platform;
    key = { organizationId, deploymentId: organizationId };
    await hosting.createWebhook({
      ...{ ...platform.deed(), ...key, name: "app", webhookId: "app-id", sealed: "sealed" },
      ...{ url: "https://example.com", ends: [], endpoint: "", namedOnly: false, limit: 1 },
    });
    for (const kind of RULES) {
      for (let number = 0; number < COUNT; number += 1) {
        const name = `${kind.replace("_", "-")}-${number}`;
        await hosting.createAlertRule({
          ...{ ...platform.deed(), organizationId, name, ruleId: `${name}-id`, kind, threshold: 5 },
          ...{ deployments: [], receivers: ["app"], holdMs: MINUTE_MS, limit: 100 },
        });
      }
    }
  }
  const minutes = (...truths: readonly boolean[]): Minute[] =>
    truths.map((isTrue) => {
      nowMs += MINUTE_MS;
      return { nowMs, isTrue };
    });
  // They have been found for a minute, and nodes die before any fires, when some have, at the last.
  await evaluate(place, minutes(true, true), ["taken", 1]);
  await evaluate(place, minutes(true), ["recording", COUNT]);
  await evaluate(place, minutes(true), ["recording", 2 * COUNT]);
  // And so when they clear.
  await evaluate(place, minutes(true, false, false), ["taken", 1]);
  await evaluate(place, minutes(false), ["recording", COUNT]);
  await evaluate(place, minutes(false), ["recording", 2 * COUNT]);
  await evaluate(place, minutes(false, false), ["done", 1]);
  await using storage = await open();
  const { items } = await storage.hosting.listDeliveries({ ...key, limit: 100 });
  const told: string[] = [];
  for (const { deliveryId } of items) {
    const read = await storage.hosting.getDelivery({ ...key, deliveryId });
    const { type, data } = JSON.parse(read?.body ?? "{}") as AlertMessage;
    told.push(...data.alerts.map(({ subject }) => `${data.rule} ${type} ${subject}`));
  }
  const expected = RULES.flatMap((kind) =>
    Array.from({ length: COUNT }, (_, number) => `${kind.replace("_", "-")}-${number}`),
  ).flatMap((name) =>
    ["cleared", "firing"].map((type) => `${name} alert.${type} deployment summarizer`),
  );
  expect(told.sort()).toEqual(expected);
  const { items: alerts } = await storage.hosting.listAlerts({ ...key, limit: 100 });
  expect(alerts).toHaveLength(2 * COUNT);
  expect(alerts.filter(({ clearedAtMs }) => clearedAtMs === undefined)).toEqual([]);
}

test("on SQLite", async () => {
  using folder = new TestFolder();
  await exercise([folder.file()], () => openSqlite(folder.file()));
}, 240_000);

test("on Postgres", async () => {
  const [url, schema] = [await databaseUrl(), newSchema()];
  await exercise([url, schema], () => openPostgres({ schema, leaseClock: "caller" }));
  await ask(url, `DROP SCHEMA ${schema} CASCADE`);
}, 240_000);
