import { describe, expect, test } from "vitest";
import { Capacity } from "../../../src/pool/calls/execution.ts";
import type { EndpointManifest } from "../../../src/protocol/manifest.ts";

function endpoint(name: string, kind: "api" | "task", concurrency: number): EndpointManifest {
  const schema = { input: { type: "object", properties: {} }, files: {}, output: {} };
  const limits = { timeoutMs: 1, retentionMs: 1, queueLimit: 1, priority: 0 };
  return { name, kind, concurrency, ...schema, ...limits, retries: { max: 0, backoffMs: 0 } };
}

describe("the capacity of a worker", () => {
  test("is that of each endpoint, whatever the others take", () => {
    const capacity = new Capacity();
    const [one, other] = [endpoint("one", "task", 1), endpoint("other", "api", 2)];
    capacity.take(one);
    capacity.take(other);
    expect([capacity.free(one), capacity.free(other)]).toEqual([0, 1]);
    capacity.giveBack(one);
    expect([capacity.free(one), capacity.free(other)]).toEqual([1, 1]);
  });

  test("is idle when everything was given back", () => {
    const capacity = new Capacity();
    const work = endpoint("work", "task", 3);
    capacity.take(work);
    capacity.take(work);
    capacity.giveBack(work);
    expect(capacity.idle).toBe(false);
    capacity.giveBack(work);
    expect(capacity.idle).toBe(true);
  });
});
