import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Disk, openNodeFacts, readDisk } from "../../src/app/node-facts.ts";
import { GpuLedger } from "../../src/pool/gpus/ledger.ts";

const options = {
  platformUrl: "https://tessera.example.com",
  sandbox: "kernel",
  labels: { zone: "b" },
  limit: { workers: 8, memoryBytes: 1_000 },
  use: () => ({ workers: 3, memoryBytes: 400, waiting: 1, gpus: [] }),
  isDraining: () => false,
} as const;

it("tells the disk as it was last seen, and at once when the disk hangs", async () => {
  const looks = [Promise.withResolvers<Disk>(), Promise.withResolvers<Disk>()] as const;
  let count = 0;
  const disk = () => (looks[count++] ?? looks[1]).promise;
  looks[0].resolve({ freeDiskBytes: 10, diskBytes: 20 });
  const facts = await openNodeFacts({ ...options, disk });
  expect(facts()).toMatchObject({ workers: 3, maxWorkers: 8, freeDiskBytes: 10, diskBytes: 20 });
  expect(facts()).toMatchObject({ freeDiskBytes: 10 });
  expect(count).toBe(2);
  looks[1].resolve({ freeDiskBytes: 5, diskBytes: 20 });
  await looks[1].promise;
  expect(facts()).toMatchObject({ freeDiskBytes: 5 });
});

it("looks at the disk of a folder, and knows nothing of one that is not there", async () => {
  const { freeDiskBytes, diskBytes } = await readDisk(tmpdir());
  expect(freeDiskBytes).toBeGreaterThan(0);
  expect(diskBytes).toBeGreaterThanOrEqual(freeDiskBytes);
  const nowhere = join(tmpdir(), "no", "such", "folder");
  expect(await readDisk(nowhere)).toEqual({ freeDiskBytes: 0, diskBytes: 0 });
});

it("tells how much of each GPU workers have, which are slices, and whose they are", async () => {
  const gib = (count: number): number => count * 1024 ** 3;
  const gpu = (index: number, memoryBytes: number) => ({
    ...{ index, uuid: `GPU-${index}`, name: "NVIDIA H100", minor: index },
    ...{ memoryBytes, usedBytes: 0 },
  });
  const slice = { index: 2, gpu: "GPU-1", capabilities: [] };
  const ledger = new GpuLedger({ list: [gpu(0, gib(80)), { ...gpu(1, gib(10)), slice }] });
  const of = (deployment: string) => ({ organization: "acme", deployment });
  ledger.take({ count: 1, part: 0.25 }, of("a"));
  ledger.take({ count: 1, memoryBytes: gib(20) }, of("b"));
  const disk = async (): Promise<Disk> => ({ freeDiskBytes: 0, diskBytes: 0 });
  const use = () => ({ ...options.use(), gpus: ledger.use });
  const facts = await openNodeFacts({ ...options, use, disk });
  // The smaller part goes where the least is left: into the slice.
  expect(facts().gpus).toMatchObject([
    { index: 0, dealt: 0.25, holders: ["acme/b"] },
    { index: 1, slice: { index: 2 }, dealt: 0.25, holders: ["acme/a"] },
  ]);
});
