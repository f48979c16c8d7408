import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { SERVICE_LIMITS } from "../../src/config/limits.ts";
import type { Slot } from "../../src/pool/pool.ts";
import type { EndpointManifest } from "../../src/protocol/manifest.ts";
import { Attempts } from "../../src/queue/attempts.ts";
import { Changes } from "../../src/queue/waits/changes.ts";
import { asStored } from "../../src/storage/stored.ts";
import { localFiles } from "../storage/files/local.ts";
import { newTask } from "../storage/fixtures.ts";
import { openSqlite } from "../storage/sqlite/databases.ts";

/** Collects garbage, all of it. */
setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

it("does not keep the arguments of a task while it runs", async () => {
  await using storage = await openSqlite(":memory:");
  const attempts = new Attempts({
    storage,
    now: Date.now,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    changes: new Changes(10),
    keeper: localFiles().task,
    limits: SERVICE_LIMITS,
    onEnd: () => Promise.resolve("recorded"),
  });
  const listeners: unknown[] = [];
  const slot = { execute: (_call: unknown, listener: unknown) => listeners.push(listener) };
  const started = () => {
    const payload = { json: "{}", files: [] };
    const task = asStored({ ...newTask("a"), arguments: payload }, true);
    const endpoint = { name: "work" } as EndpointManifest;
    const begun = { task, leaseId: "lease", endpoint, slot: slot as unknown as Slot };
    attempts.begin(begun, payload);
    return new WeakRef(payload);
  };
  const payload = started();
  // What a WeakRef was made for stays until the end of the turn.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(payload.deref()).toBeUndefined();
  expect([listeners.length, attempts.get("a")?.taskId]).toEqual([1, "a"]);
});
