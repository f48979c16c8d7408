import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { TROUBLESHOOTING_PATH, troubleshooting } from "../../scripts/troubleshooting.ts";
import { CATALOGUE } from "../../src/errors.ts";

describe("troubleshooting", () => {
  it("is what the catalogue says (node scripts/troubleshooting.ts writes it)", () => {
    expect(readFileSync(TROUBLESHOOTING_PATH, "utf8")).toBe(troubleshooting());
  });

  it.each(Object.keys(CATALOGUE))("says what %s means and what to do", (reason) => {
    const page = troubleshooting();
    const section = page.split(`\n### ${reason}\n`)[1]?.split("\n### ")[0];
    expect(section).toMatch(/^\nHTTP \d{3}, `[a-z_]+`\. [A-Z].*\n\n\*\*What to do:\*\* [A-Z`]/);
  });
});
