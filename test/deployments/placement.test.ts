import { describe, expect, it } from "vitest";
import { awaitedWorker, joinRefusal, missingLabels } from "../../src/deployments/placement.ts";
import type { MachineLabels, WorkerPlace } from "../../src/storage/accounts/organizations.ts";
import { DEFAULT_SETTINGS } from "../../src/storage/default-settings.ts";

const deployment = (place: WorkerPlace, requires: MachineLabels = {}) => ({
  organization: "acme",
  name: "digits",
  settings: { ...DEFAULT_SETTINGS, place, requires },
});

describe("missingLabels", () => {
  it("takes any value for *, and no other than the required one without", () => {
    expect(missingLabels({}, {})).toEqual([]);
    expect(missingLabels({ gpu: "*" }, { gpu: "h200" })).toEqual([]);
    expect(missingLabels({ gpu: "h200" }, { gpu: "h200", zone: "b" })).toEqual([]);
    expect(missingLabels({ gpu: "h200" }, { gpu: "a100" })).toEqual(["gpu=h200"]);
    expect(missingLabels({ zone: "b", gpu: "*" }, {})).toEqual(["gpu", "zone=b"]);
  });

  it("finds no label in what every object has", () => {
    expect(missingLabels({ constructor: "*" }, {})).toEqual(["constructor"]);
  });
});

describe("joinRefusal", () => {
  it("names the labels that a worker lacks, and how to join it", () => {
    const refusal = joinRefusal(deployment("any", { gpu: "*", zone: "b" }), { zone: "b" });
    expect(refusal?.reason).toBe("NO_MATCHING_WORKER");
    expect(refusal?.message).toContain("requires the label gpu, which");
    expect(refusal?.message).toContain("--label gpu=VALUE");
  });

  it("lets a worker with the labels join, but not a deployment of local workers", () => {
    expect(joinRefusal(deployment("remote", { gpu: "*" }), { gpu: "h200" })).toBeUndefined();
    expect(joinRefusal(deployment("local"), {})?.reason).toBe("NO_MATCHING_WORKER");
  });
});

describe("awaitedWorker", () => {
  it("waits for nothing where the node may start the workers", () => {
    const node = { labels: { gpu: "h200" }, hasCode: true };
    expect(awaitedWorker(deployment("any"), node)).toBeUndefined();
    expect(awaitedWorker(deployment("local", { gpu: "h200" }), node)).toBeUndefined();
  });

  it.each([
    ["remote", {}, true, /^a worker that joins: tessera worker --join URL --deployment digits$/],
    ["remote", { gpu: "*" }, true, /with the label gpu that joins: .* --label gpu=VALUE$/],
    ["any", { gpu: "h200", zone: "b" }, true, /with the labels gpu=h200, zone=b that joins/],
    ["local", { gpu: "*" }, true, /^a node with the label gpu: tessera start --label gpu=VALUE$/],
    ["any", {}, false, /^a worker that brings its code and joins as deployment digits$/],
    ["local", {}, false, /which its place `local` forbids/],
  ] as const)("says what it waits for: %s %j, code: %s", (place, requires, hasCode, text) => {
    expect(awaitedWorker(deployment(place, requires), { labels: {}, hasCode })).toMatch(text);
  });
});
