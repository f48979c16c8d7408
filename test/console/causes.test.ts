import { expect, it } from "vitest";
import type { TaskJson } from "../../gen/tessera/v1/task_pb.js";
import { causesOf } from "../../src/console/app/pages/deployments/causes.ts";

const failed = (taskId: string, endpoint: string, message?: string): TaskJson => ({
  ...{ taskId, endpoint },
  failure: { reason: "FAILURE_REASON_TIMEOUT", ...(message !== undefined && { message }) },
});

it("failed tasks are told by their causes, whichever endpoint failed, the newest first", () => {
  const tasks = [
    failed("4", "predict", "no readings"),
    failed("3", "train"),
    failed("2", "forecast", "no readings"),
    failed("1", "predict", "no readings"),
  ];
  const causes = causesOf(tasks);
  expect(causes.map(({ text, endpoints }) => [text, endpoints])).toEqual([
    ["no readings", ["predict", "forecast"]],
    ["ran out of time", ["train"]],
  ]);
  expect(causes[0]?.tasks.map(({ taskId }) => taskId)).toEqual(["4", "2", "1"]);
  expect(causesOf([])).toEqual([]);
});
