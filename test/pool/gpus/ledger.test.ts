import { describe, expect, it } from "vitest";
import type { Gpu } from "../../../src/pool/gpus/gpus.ts";
import { type GpuGrant, GpuLedger } from "../../../src/pool/gpus/ledger.ts";

const GIB = 1024 ** 3;
const MINUTE_MS = 60_000;

const gpu = (index: number, memoryGib = 80, isSliced = false): Gpu => ({
  ...{ index, uuid: `GPU-${index}`, name: "NVIDIA H100", minor: index },
  ...{ memoryBytes: memoryGib * GIB, usedBytes: 0, isSliced },
});
const of = (deployment: string, organization = "acme") => ({ organization, deployment });
const share = (gib: number, count = 1) => ({ count, memoryBytes: gib * GIB });
const numbers = (grant: GpuGrant | undefined) => grant?.gpus.map(({ index }) => index);

describe("the GPUs of a machine", () => {
  it("are given whole to one worker each, and again when it has ended", () => {
    const ledger = new GpuLedger({ list: [gpu(0), gpu(1)] });
    const first = ledger.take({ count: 1 }, of("a"));
    expect(numbers(first)).toEqual([0]);
    expect(numbers(ledger.take({ count: 1 }, of("b")))).toEqual([1]);
    expect(ledger.take({ count: 1 }, of("c"))).toBeUndefined();
    expect(ledger.take(share(1), of("c"))).toBeUndefined();
    ledger.give(first as GpuGrant);
    ledger.give(first as GpuGrant);
    expect(ledger.take({ count: 2 }, of("c"))).toBeUndefined();
    expect(numbers(ledger.take({ count: 1 }, of("c")))).toEqual([0]);
  });

  it("are shared by their memory, which all shares together never exceed", () => {
    const ledger = new GpuLedger({ list: [gpu(0, 80), gpu(1, 24)] });
    expect(numbers(ledger.take(share(60), of("a")))).toEqual([0]);
    // Where the least is left, so that what needs more finds it.
    expect(numbers(ledger.take(share(20), of("b")))).toEqual([0]);
    expect(numbers(ledger.take(share(20), of("c")))).toEqual([1]);
    expect(ledger.take(share(5), of("d"))).toBeUndefined();
    expect(numbers(ledger.take(share(4), of("d")))).toEqual([1]);
    expect(ledger.take({ count: 1 }, of("d"))).toBeUndefined();
  });

  it("never have more shares than memory, nor two who have them whole, whatever is asked for", () => {
    const ledger = new GpuLedger({ list: [gpu(0), gpu(1, 40), gpu(2, 24)] });
    const held: GpuGrant[] = [];
    let seed = 7;
    const random = (below: number) => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let step = 0; step < 5_000; step += 1) {
      const count = 1 + random(3);
      const need = random(2) === 0 ? { count } : share(1 + random(40), count);
      const grant = random(3) === 0 ? undefined : ledger.take(need, of(`d${random(9)}`));
      if (grant) {
        held.push(grant);
      } else if (held.length > 0) {
        ledger.give(held.splice(random(held.length), 1)[0] as GpuGrant);
      }
      for (const { gpu: each, grants } of ledger.use) {
        const whole = grants.filter(({ need }) => need.memoryBytes === undefined);
        const bytes = grants.reduce((sum, { need }) => sum + (need.memoryBytes ?? 0), 0);
        expect(whole.length === 0 || grants.length === 1).toBe(true);
        expect(bytes).toBeLessThanOrEqual(each.memoryBytes);
      }
    }
  });

  it("are not dealt out when they are cut into slices", () => {
    const ledger = new GpuLedger({ list: [gpu(0, 80, true)] });
    expect(ledger.take({ count: 1 }, of("a"))).toBeUndefined();
    expect(ledger.shortage({ count: 1 }, of("a"))).toBe(
      "a worker needs 1 GPU, and GPU 0 (NVIDIA H100) is left out: it is cut into slices (MIG), which are not dealt out",
    );
  });

  it("are said to be held by whom, but for deployments of other organizations", () => {
    const ledger = new GpuLedger({ list: [gpu(0), gpu(1)] });
    ledger.take({ count: 1 }, of("reader"));
    ledger.take({ count: 1 }, of("secret", "globex"));
    expect(ledger.shortage(share(20, 2), of("writer"))).toBe(
      "a worker needs 20 GiB of 2 GPUs, and GPU 0 (NVIDIA H100) is held by acme/reader, GPU 1 (NVIDIA H100) is held by a deployment of another organization",
    );
    expect(new GpuLedger().shortage({ count: 1 }, of("writer"))).toBe(
      "a worker needs 1 GPU, and it has no GPU",
    );
  });

  it("become free by the end of the fewest workers that may end, the first of them first", () => {
    const ledger = new GpuLedger({ list: [gpu(0), gpu(1)] });
    const [a, b] = [ledger.take(share(40), of("a")), ledger.take(share(30), of("b"))];
    const c = ledger.take({ count: 1 }, of("c"));
    const grants = [a, b, c] as GpuGrant[];
    const blocking = (count: number, mayEnd: readonly GpuGrant[], gone: GpuGrant[] = []) =>
      ledger
        .blocking({ count }, of("d"), { gone: new Set(gone), mayEnd })
        ?.map(({ holder }) => holder.deployment);
    expect(blocking(1, grants)).toEqual(["c"]);
    expect(blocking(2, grants)).toEqual(["c", "a", "b"]);
    expect(blocking(1, grants.slice(0, 1))).toBeUndefined();
    expect(blocking(1, [], grants.slice(0, 2))).toEqual([]);
  });
});

describe("a GPU on which workers end because it cannot be used any more", () => {
  let nowMs = 0;
  const leftOut: string[] = [];
  const machine = (): GpuLedger => {
    leftOut.length = 0;
    return new GpuLedger(
      { list: [gpu(0), gpu(1)] },
      {
        nowMs: () => nowMs,
        onLeftOut: ({ index }, reason) => leftOut.push(`${index}: ${reason}`),
      },
    );
  };
  const crash = (ledger: GpuLedger, deployment: string): void => {
    const grant = ledger.take({ count: 1 }, of(deployment)) as GpuGrant;
    ledger.faulted(grant);
    ledger.give(grant);
  };

  it("is left out for the deployment of three in five minutes, which has another, and no others", () => {
    const ledger = machine();
    crash(ledger, "a");
    crash(ledger, "a");
    expect(leftOut).toEqual([]);
    crash(ledger, "a");
    expect(leftOut).toEqual([
      "0: workers of acme/a ended on it again and again because it could not be used any more",
    ]);
    expect(numbers(ledger.take({ count: 1 }, of("a")))).toEqual([1]);
    expect(ledger.shortage({ count: 1 }, of("a"))).toContain("GPU 0 (NVIDIA H100) is left out: ");
    expect(numbers(ledger.take({ count: 1 }, of("b")))).toEqual([0]);
  });

  it("is left out for all when they were of several", () => {
    const ledger = machine();
    for (const deployment of ["a", "b", "a"]) {
      crash(ledger, deployment);
    }
    expect(numbers(ledger.take({ count: 1 }, of("c")))).toEqual([1]);
    expect(ledger.use[0]?.leftOut).toContain("several deployments");
  });

  it("is tried again after half an hour, and is not left out for ends that are far apart", () => {
    const ledger = machine();
    crash(ledger, "a");
    crash(ledger, "a");
    nowMs += 6 * MINUTE_MS;
    crash(ledger, "a");
    expect(leftOut).toEqual([]);
    crash(ledger, "a");
    crash(ledger, "a");
    expect(leftOut).toHaveLength(1);
    nowMs += 31 * MINUTE_MS;
    expect(ledger.use[0]?.leftOut).toBeUndefined();
    expect(numbers(ledger.take({ count: 1 }, of("a")))).toEqual([0]);
  });
});
