import { setImmediate } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { Gpu, Gpus } from "../../../src/pool/gpus/gpus.ts";
import { type GpuGrant, GpuLedger } from "../../../src/pool/gpus/ledger.ts";

const GIB = 1024 ** 3;
const MINUTE_MS = 60_000;

const gpu = (index: number, memoryGib = 80): Gpu => ({
  ...{ index, uuid: `GPU-${index}`, name: "NVIDIA H100", minor: index },
  ...{ memoryBytes: memoryGib * GIB, usedBytes: 0 },
});
const slice = (index: number, memoryGib = 10): Gpu => ({
  ...gpu(0, memoryGib),
  uuid: `MIG-${index}`,
  name: "NVIDIA H100 MIG 1g.10gb",
  slice: { index, gpu: "GPU-0", capabilities: [] },
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
      const part = (1 + random(99)) / 100;
      const needs = [{ count }, share(1 + random(40), count), { count: 1, part }];
      const need = needs[random(4)] ?? { ...share(1 + random(10)), part };
      const grant = random(3) === 0 ? undefined : ledger.take(need, of(`d${random(9)}`));
      if (grant) {
        held.push(grant);
      } else if (held.length > 0) {
        ledger.give(held.splice(random(held.length), 1)[0] as GpuGrant);
      }
      for (const { gpu: each, grants } of ledger.use) {
        const shares = grants.map(({ gpus }) => gpus.find(({ uuid }) => uuid === each.uuid)?.share);
        const sum = (of: "part" | "bytes") =>
          shares.reduce((total, one) => total + (one?.[of] ?? 0), 0);
        expect(!shares.includes(undefined) || grants.length === 1).toBe(true);
        expect(sum("bytes")).toBeLessThanOrEqual(each.memoryBytes);
        expect(sum("part")).toBeLessThan(1 + 1e-6);
      }
    }
  });

  it("are shared by parts of them, which have that part of the memory and are together at most whole", () => {
    const ledger = new GpuLedger({ list: [gpu(0)] });
    const tenth = { count: 1, part: 0.1 };
    const held = Array.from({ length: 10 }, () => ledger.take(tenth, of("a")) as GpuGrant);
    expect(held.map(({ gpus }) => gpus[0]?.share?.bytes)).toEqual(held.map(() => 8 * GIB));
    expect(ledger.take({ count: 1, part: 0.01 }, of("b"))).toBeUndefined();
    for (const grant of held) {
      ledger.give(grant);
    }
    expect(numbers(ledger.take({ count: 1 }, of("b")))).toEqual([0]);
  });

  it("are shared by what is scarcer, their parts or their memory", () => {
    const ledger = new GpuLedger({ list: [gpu(0)] });
    // Half of a GPU with little memory, and little of a GPU with much memory.
    expect(ledger.take({ ...share(10), part: 0.5 }, of("a"))).toBeDefined();
    expect(ledger.take({ ...share(60), part: 0.1 }, of("b"))).toBeDefined();
    expect(ledger.take(share(20), of("c"))).toBeUndefined();
    expect(ledger.take({ ...share(5), part: 0.5 }, of("c"))).toBeUndefined();
    // Memory alone is the part that it is of the whole, and a part alone has its memory.
    expect(ledger.take({ count: 1, part: 0.2 }, of("c"))).toBeUndefined();
    expect(ledger.take(share(8), of("c"))).toBeDefined();
    expect(ledger.shortage({ ...share(5), part: 0.5 }, of("c"))).toContain(
      "a worker needs 0.5 and 5 GiB of 1 GPU, and GPU 0 (NVIDIA H100) is held by acme/a and",
    );
  });

  it("are dealt out by their slices when they are cut, of which a worker has one", () => {
    const ledger = new GpuLedger({ list: [slice(0), slice(1), slice(2, 20), gpu(1)] });
    const first = ledger.take({ count: 1 }, of("a"));
    expect(first?.gpus.map(({ uuid }) => uuid)).toEqual(["MIG-0"]);
    expect(ledger.take(share(15), of("b"))?.gpus[0]?.uuid).toBe("MIG-2");
    expect(ledger.take({ count: 2 }, of("c"))).toBeUndefined();
    expect(ledger.shortage({ count: 2 }, of("c"))).toBe(
      "a worker needs 2 GPUs, and slice 0 of GPU 0 (NVIDIA H100 MIG 1g.10gb) is held by acme/a, slice 1 of GPU 0 (NVIDIA H100 MIG 1g.10gb) is free, slice 2 of GPU 0 (NVIDIA H100 MIG 1g.10gb) is held by acme/b, GPU 1 (NVIDIA H100) is free; a program computes on one slice at most",
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

describe("the GPUs of a machine on which two programs deal them out", () => {
  /** As the names of `lock.ts`, without a socket. */
  function machine(): { readonly node: GpuLedger; readonly agent: GpuLedger } {
    const locked = new Set<string>();
    const port = (): Gpus => ({
      list: [gpu(0), gpu(1)],
      lock: ({ uuid }) => {
        if (locked.has(uuid)) {
          return undefined;
        }
        locked.add(uuid);
        return { [Symbol.dispose]: () => void locked.delete(uuid) };
      },
    });
    return { node: new GpuLedger(port()), agent: new GpuLedger(port()) };
  }

  it("are given by one of them each, which says what the other one has", async () => {
    const { node, agent } = machine();
    const held = [node.take(share(20), of("a")), node.take(share(20), of("b"))] as GpuGrant[];
    expect(held.map(numbers)).toEqual([[0], [0]]);
    // What one of them has not taken in a turn, the other may.
    await setImmediate();
    expect(numbers(agent.take(share(20), of("far")))).toEqual([1]);
    expect(agent.has({ count: 1 }, of("far"))).toBe(false);
    expect(agent.shortage({ count: 1 }, of("far"))).toContain(
      "GPU 0 (NVIDIA H100) is left out: another node, or a joined worker, on this machine has it",
    );
    node.give(held[0] as GpuGrant);
    await setImmediate();
    expect(agent.has(share(70), of("far"))).toBe(false);
    node.give(held[1] as GpuGrant);
    await setImmediate();
    expect(numbers(agent.take(share(70), of("far")))).toEqual([0]);
    expect(node.has(share(1), of("a"))).toBe(false);
    expect(agent.use.map(({ leftOut }) => leftOut)).toEqual([undefined, undefined]);
  });
});
