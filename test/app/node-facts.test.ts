import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { type Disk, openNodeFacts, readDisk } from "../../src/app/node-facts.ts";

const options = {
  sandbox: "kernel",
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
