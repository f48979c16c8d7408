import { expect, it } from "vitest";
import { Rollout } from "../../src/deployments/rollout.ts";
import type { Pool } from "../../src/pool/pool.ts";
import type { ServiceCode } from "../../src/pool/worker-options.ts";
import type { ServiceManifest } from "../../src/protocol/manifest.ts";
import { endpoint, manifestOf } from "../service/manifests.ts";

const serving = (...names: readonly string[]): ServiceManifest =>
  manifestOf(...names.map((name) => endpoint({ name, kind: "task" })));

function rollout() {
  const ends: number[] = [];
  const it = new Rollout({
    policy: {},
    pool: { adopt() {} } as Partial<Pool> as Pool,
    now: () => 0,
    lastLines: () => [],
    onTakeover() {},
    onActive() {},
    onEnd: () => void ends.push(ends.length),
    onTold() {},
  });
  return { it, ends };
}

const code = (awaits?: { isWhole: true }): ServiceCode =>
  ({
    servicePath: "/artifact/service.js",
    revision: { number: 1, env: {}, network: { access: "open", hosts: [] }, awaits },
  }) as unknown as ServiceCode;

it("lacks no endpoint before a worker has told the manifest that is believed", () => {
  const { it, ends } = rollout();
  const service = code();
  it.resume(service, serving("work"));
  expect([it.isBelieved, it.lacks("job"), it.lacks("work")]).toEqual([true, false, false]);
  const before = ends.length;
  it.told(service, serving("work"));
  expect([it.isBelieved, it.lacks("job"), it.lacks("work")]).toEqual([false, true, false]);
  // What nobody runs is looked for now.
  expect(ends.length).toBe(before + 1);
  it.told(service, serving("job"));
  expect([it.lacks("job"), it.lacks("work")]).toEqual([true, false]);
});

it("lacks what its first worker does not tell of, though it was believed", () => {
  const { it } = rollout();
  const service = code();
  it.resume(service, serving("work"));
  it.told(service, serving("job"));
  expect([it.lacks("job"), it.lacks("work")]).toEqual([false, true]);
});

it("goes by what was deployed where no worker of this node can tell", () => {
  const { it } = rollout();
  it.resume(code({ isWhole: true }), serving("work"));
  expect([it.isBelieved, it.lacks("job")]).toEqual([false, true]);
});
