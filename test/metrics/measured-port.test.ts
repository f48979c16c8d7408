import { expect, it } from "vitest";
import { measuredStorage } from "../../src/app/metrics.ts";
import { expose } from "../../src/metrics/exposition.ts";
import { measured } from "../../src/metrics/measured-port.ts";
import { Metrics } from "../../src/metrics/metrics.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { openSqlite } from "../storage/sqlite/databases.ts";
import { whole } from "./fixture.ts";

const fromOutside = (storage: Storage, metrics: Metrics): Storage =>
  measured(
    storage,
    metrics.storageObserver(() => "unavailable"),
    ["accounts"],
  );

it.each([
  ["looked at from outside", fromOutside],
  ["as it tells itself", measuredStorage],
])(
  "times a storage's operations by name and by how they end, and those of its parts: %s",
  async (_, measuring) => {
    const metrics = new Metrics({ node: "n1", now: Date.now });
    const sqlite = await openSqlite(":memory:");
    const storage = measuring(sqlite, metrics, () => {});
    expect(storage.capabilities).toEqual(sqlite.capabilities);
    expect(await storage.countTasks({ deploymentId: "none" })).toEqual([]);
    expect(await storage.accounts.needsSetup()).toBe(true);
    await storage.metrics.pruneSamples({ nowMs: 0, afterMs: 0 });
    await storage[Symbol.asyncDispose]();
    await expect(storage.countTasks({ deploymentId: "none" })).rejects.toThrow();
    const text = await whole(expose(metrics));
    const counts = text
      .split("\n")
      .filter((line) => line.includes("_seconds_count"))
      .map((line) => line.replace(/.*operation="([\w.]+)",result="(\w+)"\} /, "$1 $2 "));
    expect(counts).toEqual([
      "countTasks ok 1",
      "accounts.needsSetup ok 1",
      "countTasks unavailable 1",
    ]);
  },
);
