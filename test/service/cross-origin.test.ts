import { expect, it } from "vitest";
import { letsOrigin } from "../../src/service/cross-origin.ts";
import { threadTimer } from "../thread-time.ts";

it.each([
  [{ origins: ["https://a.example"] }, "https://a.example", true],
  [{ origins: ["https://a.example"] }, "https://a.example.evil.example", false],
  [{ origins: ["https://a.example"] }, "http://a.example", false],
  [{ origins: [] }, "https://a.example", false],
  [{ origins: ["*"] }, "null", true],
  [{ origins: [], originPattern: "https://.*\\.a\\.example" }, "https://b.a.example", true],
  [{ origins: [], originPattern: "https://.*\\.a\\.example" }, "https://b.a.example.evil", false],
  [{ origins: [], originPattern: "https://a|https://b" }, "https://b.evil", false],
  [{ origins: [], originPattern: ".*" }, `https://${"a".repeat(300)}`, false],
])("by %j, %s may call: %j", (cors, origin, may) => {
  expect(letsOrigin(cors, origin)).toBe(may);
  expect(letsOrigin(cors, origin)).toBe(may);
});

it("gives a pattern that takes too long no second chance", () => {
  const cors = { origins: [], originPattern: "(a+)+b|fast" };
  expect(letsOrigin(cors, "fast")).toBe(true);
  const spentMs = threadTimer();
  for (let n = 0; n < 1_000; n++) {
    expect(letsOrigin(cors, `${"a".repeat(40)}${n}`)).toBe(false);
  }
  expect(spentMs()).toBeLessThan(1_000);
  expect(letsOrigin(cors, "fast")).toBe(false);
});
