import { expect, it } from "vitest";
import { createIdSource } from "../../src/tasks/id.ts";
import { MAX_INNOCENT_LOST_NODES, restartAfterLostNode } from "../../src/tasks/lost.ts";

const NOW_MS = 1_000_000;
const LATE = { lostNodes: MAX_INNOCENT_LOST_NODES + 1, nowMs: NOW_MS };

it("a task returns at once after the first lost nodes", () => {
  const lost = { taskId: "a", attempt: 1, lostNodes: MAX_INNOCENT_LOST_NODES, nowMs: NOW_MS };
  expect(restartAfterLostNode(lost)).toBeUndefined();
});

it("then tasks that were lost together are spread over a minute, and not in the same order again", () => {
  const newId = createIdSource();
  const ids = Array.from({ length: 1_000 }, newId);
  const times = (attempt: number) =>
    ids.map((taskId) => (restartAfterLostNode({ ...LATE, taskId, attempt }) ?? 0) - NOW_MS);
  const first = times(4);
  expect(Math.min(...first)).toBeGreaterThan(0);
  expect(Math.max(...first)).toBeLessThanOrEqual(60_000);
  const tenths = new Set(first.map((ms) => Math.floor(ms / 6_000)));
  expect(tenths.size).toBeGreaterThanOrEqual(10);
  expect(times(4)).toEqual(first);
  expect(times(5)).not.toEqual(first);
});
