import { create } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { describe, expect, it } from "vitest";
import { DeploymentSettingsSchema } from "../../gen/tessera/v1/deployment_pb.js";
import { faultOfLabel } from "../../src/cli/deployment/settings.ts";
import {
  awaitedText,
  awaitedWorkers,
  gpuNeedOn,
  joinedEndpoints,
  missingLabels,
  placementOf,
  runsOnNodes,
} from "../../src/deployments/placement.ts";
import { Problem } from "../../src/errors.ts";
import type { Awaited } from "../../src/pool/worker-options.ts";
import type { EndpointManifest, ServiceManifest } from "../../src/protocol/manifest.ts";
import { faultOfPlacement, type PlacementManifest } from "../../src/protocol/placement.ts";
import type { MachineLabels, WorkerPlace } from "../../src/storage/deployment-settings.ts";
import { DEFAULT_SETTINGS } from "../../src/storage/deployment-settings.ts";

const [MIB, GIB] = [1024 ** 2, 1024 ** 3];

const deployment = (place: WorkerPlace, requires: MachineLabels = {}, settings: object = {}) => ({
  organization: "acme",
  name: "digits",
  settings: { ...DEFAULT_SETTINGS, place, requires, ...settings },
});

/** A service of these endpoints, of which only the placements matter. */
function service(
  endpoints: Readonly<Record<string, PlacementManifest>> = { one: {}, two: {} },
  placement: PlacementManifest = {},
): ServiceManifest {
  const list = Object.entries(endpoints).map(([name, own]) => ({ name, ...own }));
  return { name: "digits", endpoints: list as unknown as EndpointManifest[], ...placement };
}

const VALIDATOR = createValidator();

const SPLIT = service({
  ask: { place: "local" },
  learn: { requires: { gpu: "*" }, place: "remote" },
  tell: {},
});

describe("placementOf", () => {
  const any = { place: "any", requires: {} } as const;

  it("adds up what the service, the endpoint and the settings require", () => {
    const { requires } = placementOf(
      { requires: { zone: "b" } },
      { requires: { gpu: "*" } },
      { place: "any", requires: { disk: "ssd" } },
    );
    expect(requires).toEqual({ zone: "b", gpu: "*", disk: "ssd" });
  });

  it("takes a label of the settings before that of the endpoint, and that before the service's", () => {
    const [whole, one] = [{ requires: { gpu: "a100" } }, { requires: { gpu: "h200" } }];
    expect(placementOf(whole, {}, any).requires).toEqual({ gpu: "a100" });
    expect(placementOf(whole, one, any).requires).toEqual({ gpu: "h200" });
    const settings = { place: "any", requires: { gpu: "*" } } as const;
    expect(placementOf(whole, one, settings).requires).toEqual({ gpu: "*" });
  });

  it.each([
    [undefined, undefined, "any", "any"],
    ["remote", undefined, "any", "remote"],
    ["remote", "any", "any", "any"],
    ["remote", "local", "any", "local"],
    ["remote", "local", "remote", "remote"],
    [undefined, "remote", "local", "local"],
  ] as const)("of a service %s, an endpoint %s and settings %s is %s", (whole, one, set, place) => {
    const of = (said: WorkerPlace | undefined) => (said === undefined ? {} : { place: said });
    expect(placementOf(of(whole), of(one), { place: set, requires: {} }).place).toBe(place);
  });
});

describe("the rule of labels", () => {
  it.each([
    ["gpu", "*"],
    ["gpu", "h200"],
    ["example.com/zone-1", "a.b_c-d"],
    ["", "x"],
    ["-gpu", "x"],
    ["gpu", ""],
    ["gpu", "*x"],
    ["gpu", "a b"],
    ["n".repeat(63), "v".repeat(255)],
    ["n".repeat(64), "v"],
    ["n", "v".repeat(256)],
  ])("is one for the code, the command line and the API: %s=%s", (name, value) => {
    const isValid = faultOfPlacement({ requires: { [name]: value } }) === undefined;
    expect(faultOfLabel(name, value) === undefined).toBe(isValid);
    const settings = create(DeploymentSettingsSchema, { requires: { [name]: value } });
    const { kind } = VALIDATOR.validate(DeploymentSettingsSchema, settings);
    expect(kind === "valid").toBe(isValid);
  });
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

describe("joinedEndpoints", () => {
  const names = (...asked: Parameters<typeof joinedEndpoints>) => [...joinedEndpoints(...asked)];
  const refusal = (...asked: Parameters<typeof joinedEndpoints>): Problem => {
    try {
      joinedEndpoints(...asked);
    } catch (err) {
      expect(err).toBeInstanceOf(Problem);
      return err as Problem;
    }
    throw new Error("it was not refused");
  };

  it("names the labels that a worker lacks, and how to join it", () => {
    const asked = deployment("any", { gpu: "*", zone: "b" });
    const { reason, message, details } = refusal(asked, service(), { zone: "b" });
    expect(reason).toBe("NO_MATCHING_WORKER");
    expect(message).toContain("requires the label gpu, which");
    expect(message).toContain("--label gpu=VALUE");
    expect(details).toMatchObject([{ value: { metadata: { labels: "gpu" } } }]);
  });

  it("lets a worker with the labels join, but not a deployment of local workers", () => {
    const asked = deployment("remote", { gpu: "*" });
    expect(names(asked, service(), { gpu: "h200" })).toEqual(["one", "two"]);
    expect(refusal(deployment("local"), service(), {}).message).toContain("--place any");
    const local = service({ one: {} }, { place: "local" });
    expect(refusal(deployment("any"), local, {}).message).toContain("--place remote");
  });

  it("gives a worker the endpoints whose labels its machine has", () => {
    expect(names(deployment("any"), SPLIT, { gpu: "h200" })).toEqual(["learn", "tell"]);
    expect(names(deployment("any"), SPLIT, {})).toEqual(["tell"]);
    expect(names(deployment("remote"), SPLIT, {})).toEqual(["ask", "tell"]);
  });

  it("names what is missing for the nearest endpoint where a worker fits none", () => {
    const apart = service({
      far: { requires: { gpu: "*", zone: "b" } },
      near: { requires: { disk: "ssd" } },
    });
    expect(refusal(deployment("any"), apart, {}).message).toMatch(/the label disk=ssd, which/);
  });
});

describe("awaitedWorkers", () => {
  it("are all where the machine of the node is drained", () => {
    const node = { labels: { gpu: "h200" }, hasCode: true, isDrained: true };
    const awaits = awaitedWorkers(deployment("any"), service(), node);
    expect(awaits).toMatchObject({ isWhole: true });
    expect(awaits && awaitedText(awaits, () => false)).toBe(
      "waits for a machine that takes work: that of this node is drained",
    );
  });

  const node = { labels: {}, hasCode: true };
  const gpuNode = { labels: { gpu: "h200" }, hasCode: true };

  it("waits for nothing where the node may start the workers", () => {
    expect(awaitedWorkers(deployment("any"), service(), gpuNode)).toBeUndefined();
    const asked = deployment("local", { gpu: "h200" });
    expect(awaitedWorkers(asked, service(), gpuNode)).toBeUndefined();
  });

  it.each([
    ["remote", {}, true, /^a worker that joins: tessera worker --join URL --deployment digits$/],
    ["remote", { gpu: "*" }, true, /with the label gpu that joins: .* --label gpu=VALUE$/],
    ["any", { gpu: "h200", zone: "b" }, true, /with the labels gpu=h200, zone=b that joins/],
    ["local", { gpu: "*" }, true, /^a node with the label gpu: tessera start --label gpu=VALUE$/],
    ["any", {}, false, /^a worker that brings its code and joins as deployment digits$/],
    ["local", {}, false, /which its place `local` forbids/],
  ] as const)("says what it waits for: %s %j, code: %s", (place, requires, hasCode, text) => {
    const asked = deployment(place, requires);
    const awaits = awaitedWorkers(asked, service(), { labels: {}, hasCode });
    expect(awaits?.isWhole).toBe(true);
    expect([...(awaits?.endpoints.keys() ?? [])]).toEqual(["one", "two"]);
    expect(awaits?.endpoints.get("two")).toMatch(text);
  });

  it("waits for workers of some endpoints, and of all where the settings say so", () => {
    const some = awaitedWorkers(deployment("any"), SPLIT, gpuNode);
    expect(some).toMatchObject({ isWhole: false });
    expect([...(some?.endpoints.keys() ?? [])]).toEqual(["learn"]);
    expect(awaitedWorkers(deployment("local"), SPLIT, gpuNode)).toBeUndefined();
    expect(awaitedWorkers(deployment("local"), SPLIT, node)).toMatchObject({ isWhole: false });
    expect(awaitedWorkers(deployment("remote"), SPLIT, gpuNode)).toMatchObject({ isWhole: true });
  });
});

describe("awaitedText", () => {
  const awaits = (endpoints: Readonly<Record<string, string>>, isWhole: boolean): Awaited => ({
    endpoints: new Map(Object.entries(endpoints)),
    isWhole,
  });
  const none = () => false;

  it("speaks of the deployment where all endpoints wait for the same", () => {
    expect(awaitedText(awaits({ a: "a GPU", b: "a GPU" }, true), none)).toBe("waits for a GPU");
  });

  it("names the endpoints that wait where others do not, or wait for something else", () => {
    const some = awaits({ a: "a GPU", b: "a GPU" }, false);
    expect(awaitedText(some, none)).toBe("endpoints a, b wait for a GPU");
    expect(awaitedText(some, (name) => name === "a")).toBe("endpoint b waits for a GPU");
    expect(awaitedText(awaits({ a: "a GPU", b: "a disk" }, true), none)).toBe(
      "endpoint a waits for a GPU; endpoint b waits for a disk",
    );
  });

  it("is nothing where all are served", () => {
    expect(awaitedText(awaits({ a: "a GPU" }, true), () => true)).toBeUndefined();
  });
});

describe("what a node may run", () => {
  it("is nothing of a deployment whose place is remote, in the settings or for every endpoint", () => {
    expect(runsOnNodes(service(), DEFAULT_SETTINGS)).toBe(true);
    expect(runsOnNodes(service(), { ...DEFAULT_SETTINGS, place: "remote" })).toBe(false);
    expect(runsOnNodes(service({ one: {} }, { place: "remote" }), DEFAULT_SETTINGS)).toBe(false);
    expect(runsOnNodes(SPLIT, DEFAULT_SETTINGS)).toBe(true);
  });

  it("takes the GPUs that the deployment says, or else the code, whole or a share of each", () => {
    const all = () => true;
    const need = (settings: object, code: object = {}) =>
      gpuNeedOn({ ...DEFAULT_SETTINGS, ...settings }, { ...service(), ...code }, all);
    expect(need({})).toBeUndefined();
    expect(need({}, { gpus: 2 })).toEqual({ count: 2 });
    expect(need({ gpus: 1 }, { gpus: 2, gpuMemoryMib: 10 })).toEqual({ count: 1 });
    expect(need({ gpuMemoryMib: 20 }, { gpus: 2 })).toEqual({ count: 1, memoryBytes: 20 * MIB });
    expect(need({ gpus: 2, gpuMemoryMib: 20 })).toEqual({ count: 2, memoryBytes: 20 * MIB });
    expect(need({ gpus: 0.5 }, { gpus: 2 })).toEqual({ count: 1, part: 0.5 });
    expect(need({ gpus: 0.5, gpuMemoryMib: 20 })).toEqual({
      ...{ count: 1, part: 0.5 },
      memoryBytes: 20 * MIB,
    });
  });

  it("takes none for endpoints that require no label gpu beside others that do", () => {
    const settings = { ...DEFAULT_SETTINGS, gpus: 1 };
    expect(gpuNeedOn(settings, SPLIT, (name) => name === "learn")).toEqual({ count: 1 });
    expect(gpuNeedOn(settings, SPLIT, (name) => name !== "learn")).toBeUndefined();
  });

  it("is nothing that needs more GPUs than it has, whoever has them now", () => {
    const gpus = [{ memoryBytes: 80 * GIB }, { memoryBytes: 24 * GIB }];
    const awaited = (settings: object, machine = gpus) =>
      awaitedText(
        awaitedWorkers(deployment("local", {}, settings), service(), {
          ...{ labels: {}, hasCode: true, gpus: machine },
        }) ?? { endpoints: new Map(), isWhole: false },
        () => false,
      );
    expect(awaited({ gpus: 2 })).toBeUndefined();
    expect(awaited({ gpus: 3 })).toBe("waits for a node with 3 GPUs");
    expect(awaited({ gpuMemoryMib: 80 * 1024 })).toBeUndefined();
    expect(awaited({ gpuMemoryMib: 81 * 1024 })).toBe("waits for a node with 81 GiB of 1 GPU");
    expect(awaited({ gpus: 1 }, [])).toBe("waits for a node with 1 GPU");
    expect(awaited({ gpus: 0.5 }, [])).toBe("waits for a node with 0.5 of 1 GPU");
    // CUDA computes on one slice at most.
    const slices = gpus.map((gpu) => ({ ...gpu, slice: {} }));
    expect(awaited({ gpus: 1 }, slices)).toBeUndefined();
    expect(awaited({ gpus: 2 }, slices)).toBe("waits for a node with 2 GPUs");
  });
});

describe("a service of mounted servers alone", () => {
  const mounted = (placement: PlacementManifest & { gpus?: number } = {}): ServiceManifest => ({
    ...service({}, placement),
    mounts: [{ path: "/", timeoutMs: 1_000, concurrency: 1 }],
  });
  const node = { labels: {}, hasCode: true };

  it("runs on nodes, and has the GPUs that it asks for", () => {
    expect(runsOnNodes(mounted(), deployment("any").settings)).toBe(true);
    expect(awaitedWorkers(deployment("any"), mounted(), node)).toBeUndefined();
    const { settings } = deployment("any");
    expect(gpuNeedOn(settings, mounted({ gpus: 1 }), () => true)).toEqual({ count: 1 });
  });

  it("runs on machines that join, where these have its labels", () => {
    const placed = deployment("any", { gpu: "*" });
    const awaited = awaitedWorkers(placed, mounted(), node);
    expect(awaited?.isWhole).toBe(true);
    expect(awaited?.endpoints.get("/")).toMatch(/^a worker with the label gpu that joins/);
    expect(joinedEndpoints(placed, mounted(), { gpu: "h200" })).toEqual(new Set(["/"]));
    expect(() => joinedEndpoints(placed, mounted(), {})).toThrow(/--label gpu=VALUE/);
  });
});
