import { describe, expect, it } from "vitest";
import { safePath } from "../../src/console/app/api/safe-path.ts";

const OWN = "https://tessera.example";

describe("the page after a sign-in", () => {
  it.each([
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example",
    "/\t/evil.example",
    "\\\\evil.example",
    " //evil.example",
    "/.//evil.example",
    "/a/..//evil.example",
    "/%2e//evil.example",
    "/.\\/evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "evil.example",
    "//",
    "",
    undefined,
    ["/account"],
  ])("is on this server, and not %j", (next) => {
    expect(safePath(next, OWN)).toBe("/");
  });

  it.each(["/o/acme/tasks?status=failed&error=%5Bx#end", "/", "/@evil.example", "/.evil.example"])(
    "is %j as it was written",
    (next) => {
      expect(safePath(next, OWN)).toBe(next);
    },
  );
});
