import { describe, expect, test } from "vitest";
import {
  cellOfTaskId,
  createIdSource,
  HOME_CELL,
  idBoundary,
  isTaskId,
  timeOfTaskId,
} from "../../src/tasks/id.ts";

const COUNT = 100_000;

describe("task ids", () => {
  test("are UUIDs of version 8 and of the variant of RFC 9562", () => {
    const newId = createIdSource();
    for (let drawn = 0; drawn < 2_000; drawn++) {
      expect(newId()).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
    }
  });

  test("begin with the time in milliseconds", () => {
    // The example of RFC 9562, appendix A.6: 2022-02-22T19:22:22.000Z.
    const newId = createIdSource(() => 0x017f22e279b0);
    expect(newId()).toMatch(/^017f22e2-79b0-800/);
    expect(createIdSource(() => 0)()).toMatch(/^00000000-0000-800/);
  });

  test("sort by the time at which they were made", () => {
    let nowMs = 1_750_000_000_000;
    const newId = createIdSource(() => nowMs);
    const ids = Array.from({ length: 5_000 }, (_, index) => {
      nowMs += 1 + (index % 3);
      return newId();
    });
    expect(ids.toSorted()).toEqual(ids);
  });

  test("are unique within one millisecond, and from several sources", () => {
    const sources = [createIdSource(() => 1), createIdSource(() => 1)];
    const ids = new Set<string>();
    for (let drawn = 0; drawn < COUNT / 2; drawn++) {
      for (const newId of sources) {
        ids.add(newId());
      }
    }
    expect(ids.size).toBe(COUNT);
  });

  test("vary in every bit after the time but those of version, cell and variant", () => {
    const newId = createIdSource(() => 0);
    const bits = (id: string) => BigInt(`0x${id.replaceAll("-", "")}`);
    let ones = 0n;
    let zeros = 0n;
    for (let drawn = 0; drawn < 2_000; drawn++) {
      ones |= bits(newId());
      zeros |= ~bits(newId());
    }
    const random = ones & zeros & ((1n << 80n) - 1n);
    expect(random.toString(16)).toBe("f3fffffffffffffff");
    expect(random).toBe(((1n << 68n) - 1n) & ~(3n << 62n));
  });

  test("tell the cell that keeps what they name, and those of version 7 are home's", () => {
    expect(cellOfTaskId(createIdSource()())).toBe(HOME_CELL);
    expect(cellOfTaskId("017f22e2-79b0-8ffc-98c4-dc0c0c07398f")).toBe(255);
    expect(cellOfTaskId("017f22e2-79b0-803c-98c4-dc0c0c07398f")).toBe(3);
    expect(cellOfTaskId("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")).toBe(HOME_CELL);
  });

  test("tell the time at which they were made", () => {
    for (const timeMs of [0, 1, 0x017f22e279b0, 2 ** 48 - 1]) {
      expect(timeOfTaskId(createIdSource(() => timeMs)())).toBe(timeMs);
    }
  });

  test("tell their time whatever was asked before", () => {
    const timeMs = 1_750_000_000_000;
    const taskId = createIdSource(() => timeMs)();
    for (const other of ["", "0", taskId.slice(0, 5), "not a task's id"]) {
      timeOfTaskId(other);
      expect(timeOfTaskId(taskId)).toBe(timeMs);
    }
  });

  test("sort around the boundary of a time as the times do", () => {
    const timeMs = 1_750_000_000_000;
    const boundary = idBoundary(timeMs);
    expect(createIdSource(() => timeMs - 1)() < boundary).toBe(true);
    expect(createIdSource(() => timeMs)() >= boundary).toBe(true);
  });

  test("are told from other text", () => {
    expect(isTaskId(createIdSource()())).toBe(true);
    const id = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f";
    expect(isTaskId(id)).toBe(true);
    expect(isTaskId(id.replace("-7cc3", "-8cc3"))).toBe(true);
    const others = [
      "",
      "submit",
      id.toUpperCase(),
      `${id} `,
      `${id}\n`,
      id.slice(1),
      id.replace("-7cc3", "-4cc3"),
      id.replace("-98c4", "-c8c4"),
      id.replaceAll("-", ""),
      `{${id}}`,
    ];
    expect(others.filter(isTaskId)).toEqual([]);
  });
});
