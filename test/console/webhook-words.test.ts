import { expect, it } from "vitest";
import { heardBy } from "../../src/console/app/api/webhook-words.ts";

it("a webhook says in words of which tasks it is told", () => {
  const [success, failure, cancelled] = [
    "WEBHOOK_EVENT_TASK_SUCCESS",
    "WEBHOOK_EVENT_TASK_FAILURE",
    "WEBHOOK_EVENT_TASK_CANCELLED",
  ] as const;
  expect(heardBy({})).toBe("all tasks");
  expect(heardBy({ events: [success, failure, cancelled] })).toBe("all tasks");
  expect(heardBy({ events: [success, failure, cancelled], endpoint: "ocr" })).toBe("tasks of ocr");
  expect(heardBy({ events: [failure, cancelled] })).toBe("failed and cancelled tasks");
  expect(heardBy({ events: [failure], endpoint: "ocr", namedOnly: true })).toBe(
    "failed tasks of ocr that name it",
  );
});
