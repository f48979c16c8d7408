import { expect, it } from "vitest";
import { Semaphore } from "../../src/time/semaphore.ts";

it("runs as many jobs at a time as it has room for, in order, also after one that fails", async () => {
  const semaphore = new Semaphore(2);
  const began: number[] = [];
  const ends = Array.from({ length: 4 }, () => Promise.withResolvers<number>());
  const runs = ends.map(({ promise }, index) =>
    semaphore.run(() => {
      began.push(index);
      return promise;
    }),
  );
  expect(began).toEqual([0, 1]);
  ends[1]?.reject(new Error("no"));
  await expect(runs[1]).rejects.toThrow("no");
  expect(began).toEqual([0, 1, 2]);
  for (const index of [0, 2, 3]) {
    ends[index]?.resolve(index);
    expect(await runs[index]).toBe(index);
  }
  expect(began).toEqual([0, 1, 2, 3]);
});
