import { expect, it } from "vitest";
import { eventsText } from "../../src/console/app/api/webhook-words.ts";

it("a webhook says in words which events it sends", () => {
  const [success, failure, cancelled] = [
    "WEBHOOK_EVENT_TASK_SUCCESS",
    "WEBHOOK_EVENT_TASK_FAILURE",
    "WEBHOOK_EVENT_TASK_CANCELLED",
  ] as const;
  expect(eventsText({})).toBe("all tasks");
  expect(eventsText({ events: [success, failure, cancelled] })).toBe("all tasks");
  expect(eventsText({ events: [success, failure, cancelled], endpoint: "ocr" })).toBe(
    "tasks of ocr",
  );
  expect(eventsText({ events: [failure, cancelled] })).toBe("failed and cancelled tasks");
  expect(eventsText({ events: [failure], endpoint: "ocr", namedOnly: true })).toBe(
    "failed tasks of ocr that name it",
  );
});
