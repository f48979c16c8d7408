import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { ATTRIBUTES } from "../../src/tracing/attributes.ts";

const DOCUMENT = readFileSync(new URL("../../docs/tracing.md", import.meta.url), "utf8");

it("docs/tracing.md lists every attribute, and no other", () => {
  const listed = [...DOCUMENT.matchAll(/^\| `([a-z_.]+)` \|/gm)].map(([, name]) => name);
  expect(listed.sort()).toEqual(Object.values(ATTRIBUTES).sort());
});
