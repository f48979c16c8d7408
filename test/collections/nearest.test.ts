import { describe, expect, it } from "vitest";
import { nearest, proposal } from "../../src/collections/nearest.ts";

const KNOWN = ["task_id", "priority", "start_by", "start_within", "wait"];

describe("the nearest name", () => {
  it.each([
    ["task_ids", "task_id"],
    ["taskId", "task_id"],
    ["start-by", "start_by"],
    ["prioritty", "priority"],
    ["wiat", "wait"],
    ["start_yb", "start_by"],
    ["wand", undefined],
    ["colour", undefined],
    ["", undefined],
    ["t".repeat(10_000), undefined],
  ])("of %j is %j", (name, meant) => {
    expect(nearest(name, KNOWN)).toBe(meant);
  });

  it("is one step away, where no more are allowed", () => {
    expect(nearest("starts_wihin", KNOWN, 1)).toBeUndefined();
    expect(nearest("start_wihin", KNOWN, 1)).toBe("start_within");
  });

  it("is proposed, or else all names if they are few", () => {
    expect(proposal("task", ["task_id"])).toBe("; known are task_id");
    expect(proposal("task_i", ["task_id"])).toBe("; did you mean task_id?");
    expect(proposal("a", [])).toBe("");
    expect(
      proposal(
        "colour",
        Array.from({ length: 40 }, (_, n) => `name_${n}`),
      ),
    ).toBe("");
  });
});
