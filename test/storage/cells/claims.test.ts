/** Which databases a claim asks, and what it tells of all of them. */
import { afterEach, expect, test, vi } from "vitest";
import { HOME_CELL } from "../../../src/tasks/id.ts";
import {
  claim,
  claimAndLook,
  DEPLOYMENT,
  ENDPOINT,
  key,
  NOW_MS,
  newTask,
  openLease,
  submit,
  taskIds,
} from "../fixtures.ts";
import { beginEmpty, newId, withCell } from "./beginnings.ts";

beginEmpty();
afterEach(() => void vi.restoreAllMocks());

test("a claim finds what another node has stored at home, once maintenance has found it", async () => {
  const { storage, home } = await withCell();
  await using _storage = storage;
  await openLease(storage);
  // What was counted stays new.
  const nowMs = performance.now();
  vi.spyOn(performance, "now").mockReturnValue(nowMs);
  expect(await claim(storage)).toEqual([]);
  const taskId = newId(HOME_CELL);
  await submit(home, newTask(taskId));
  expect(await claim(storage)).toEqual([]);
  const { due } = await storage.survey({
    ...{ nowMs: NOW_MS, untilMs: NOW_MS, deploymentIds: [DEPLOYMENT] },
  });
  expect(due).toEqual([{ deploymentId: DEPLOYMENT, endpoint: ENDPOINT }]);
  expect(taskIds(await claim(storage))).toEqual([taskId]);
});

test("claims have come round all keys without a database that they do not ask any more", async () => {
  const { storage, home, cell } = await withCell();
  await using _storage = storage;
  const taskId = newId(HOME_CELL);
  await submit(storage, newTask(taskId));
  const cut = (how: "on" | "around") => ({ tasks: [], later: [{ endpoint: ENDPOINT, cut: how }] });
  vi.spyOn(home, "claimTasks").mockResolvedValue(cut("on"));
  vi.spyOn(cell, "claimTasks").mockResolvedValue(cut("around"));
  const look = async () => (await claimAndLook(storage, {})).later;
  expect(await look()).toEqual([{ endpoint: ENDPOINT, cut: "on" }]);
  expect(await look()).toEqual([{ endpoint: ENDPOINT, cut: "on" }]);
  await storage.cancelTask({ ...key(taskId), nowMs: NOW_MS });
  await expect.poll(look).toEqual([{ endpoint: ENDPOINT, cut: "around" }]);
});
