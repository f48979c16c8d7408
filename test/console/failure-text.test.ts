import { expect, it } from "vitest";
import { failureText } from "../../src/console/app/pages/tasks/failure-text.ts";

it("a failure without a message is told by its kind", () => {
  const reason = "FAILURE_REASON_OUT_OF_MEMORY";
  expect(failureText({ reason, message: "it had 512 MiB" })).toBe("it had 512 MiB");
  expect(failureText({ reason })).toBe("out of memory");
  expect(failureText({})).toBe("failed");
});
