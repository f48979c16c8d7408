import { expect, it } from "vitest";
import type { WebhookDeliveryJson } from "../../gen/tessera/v1/webhook_pb.js";
import {
  answerText,
  causeOf,
  nextAttemptOf,
  ruleOf,
} from "../../src/console/app/api/deliveries.ts";

const told = (webhook: string, error: string, time: string): WebhookDeliveryJson => ({
  webhook,
  answers: [{ error, time }],
});

const DELIVERIES = [
  told("app", "the connection was refused", "2026-11-29T12:00:00Z"),
  told("app", "the name could not be resolved", "2026-11-29T12:00:05Z"),
  told("other", "it took too long", "2026-11-29T12:00:09Z"),
];

it("what fails has a cause, the answer that came last to any of its own deliveries", () => {
  const cause = causeOf({ name: "app", failures: 2 }, DELIVERIES);
  expect(cause?.text).toBe("the name could not be resolved");
  expect(causeOf({ name: "app", failures: 0 }, DELIVERIES)).toBeUndefined();
});

it("a delivery is attempted next when it is due and its target is no longer paused", () => {
  const [soon, later] = ["2026-11-29T12:05:00Z", "2026-11-29T12:05:00.500Z"];
  const paused = { name: "app", failures: 7, pausedUntil: later };
  expect(nextAttemptOf({ nextAttemptAt: soon }, paused)).toBe(later);
  expect(nextAttemptOf({ nextAttemptAt: later }, { ...paused, pausedUntil: soon })).toBe(later);
  expect(nextAttemptOf({ nextAttemptAt: soon }, { name: "app", failures: 2 })).toBe(soon);
  expect(nextAttemptOf({}, paused)).toBe(later);
  expect(nextAttemptOf({}, undefined)).toBeUndefined();
});

it("a delivery of alerts names the rule of its first alert, where that is known", () => {
  const id = "019aa51c-0000-7000-8000-000000000000-0000";
  const known = [
    { id: "019aa51c-0000-7000-8000-000000000000", rule: "other" },
    { id, rule: "degraded" },
  ];
  expect(ruleOf({ id: `${id}-firing-app` }, known)).toBe("degraded");
  expect(ruleOf({ id: `${id}-cleared-on-firing-day` }, known)).toBe("degraded");
  expect(ruleOf({ id: `${id}-firing-app` }, [])).toBe("an alert");
});

it("an answer is told by why there was none, or by its status and text", () => {
  expect(answerText({ error: "it took too long", status: 0 })).toBe("it took too long");
  expect(answerText({ status: 503, text: "come back later" })).toBe("503 come back later");
  expect(answerText({ status: 503 })).toBe("503");
  expect(answerText({})).toBe("");
});
