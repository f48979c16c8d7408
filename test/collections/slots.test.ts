import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { array as arrayOf, assert, integer, property, tuple } from "fast-check";
import { expect, test } from "vitest";
import { SlotMap, Slots } from "../../src/collections/slots.ts";

test("a slot map answers as a Map does, whatever comes and goes", () => {
  const steps = arrayOf(tuple(integer({ min: 0, max: 2 }), integer({ min: 0, max: 7 })));
  assert(
    property(steps, (list) => {
      const map = new SlotMap<number, { readonly step: number }>();
      const model = new Map<number, { readonly step: number }>();
      for (const [step, [action, key]] of list.entries()) {
        const value = { step };
        if (action === 0) {
          map.set(key, value);
          model.delete(key);
          model.set(key, value);
        } else if (action === 1) {
          expect(map.take(key)).toBe(model.get(key));
          model.delete(key);
        }
        expect(map.get(key)).toBe(model.get(key));
        expect([map.has(key), map.size]).toEqual([model.has(key), model.size]);
      }
      expect([...map.keys()]).toEqual([...model.keys()]);
      const bySteps = (a: { step: number }, b: { step: number }) => a.step - b.step;
      expect(map.values().sort(bySteps)).toEqual([...model.values()].sort(bySteps));
    }),
  );
});

test("slots are used again, and count what is in them", () => {
  const slots = new Slots<{ readonly name: string }>();
  const [a, b] = [slots.add({ name: "a" }), slots.add({ name: "b" })];
  expect(slots.take(a)?.name).toBe("a");
  expect([slots.size, slots.get(a), slots.get(b)?.name]).toEqual([1, undefined, "b"]);
  expect(slots.add({ name: "c" })).toBe(a);
  expect(slots.values().map(({ name }) => name)).toEqual(["c", "b"]);
});

/**
 * Prints how many bytes became old while 300,000 values of 1 KB came and went,
 * 64 at a time, after a lull in which what was there grew old.
 */
const CHURN = `
  const { getHeapSpaceStatistics } = await import("node:v8");
  const { SlotMap } = await import(process.argv[1]);
  const map = process.argv[2] === "Map" ? new Map() : new SlotMap();
  const take = process.argv[2] === "Map" ? (key) => map.delete(key) : (key) => map.take(key);
  const oldBytes = () =>
    getHeapSpaceStatistics().find((each) => each.space_name === "old_space").space_used_size;
  map.set(-1, {});
  for (let at = 0, garbage; at < 100_000; at += 1) {
    garbage = new Array(128).fill(at);
  }
  let mostBytes = 0;
  const beforeBytes = oldBytes();
  for (let key = 0; key < 300_000; key += 1) {
    map.set(key, { list: new Array(128).fill(key) });
    take(key - 64);
    if (key % 1_000 === 0) {
      mostBytes = Math.max(mostBytes, oldBytes() - beforeBytes);
    }
  }
  console.log(mostBytes);
`;

async function oldBytes(kind: "Map" | "SlotMap"): Promise<number> {
  const module = new URL("../../src/collections/slots.ts", import.meta.url).href;
  const args = ["--max-semi-space-size=1", "--input-type=module", "-e", CHURN, module, kind];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  return Number(stdout);
}

test("what was in a slot map dies young, which it does not in a Map", async () => {
  const [map, slotMap] = await Promise.all([oldBytes("Map"), oldBytes("SlotMap")]);
  // Its tables grow old as well, but with nothing in them.
  expect(slotMap).toBeLessThan(map / 2);
});
