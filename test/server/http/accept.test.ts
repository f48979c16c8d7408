import { expect, test } from "vitest";
import { preferredType } from "../../../src/server/http/accept.ts";

const OFFERED = ["application/x-ndjson", "text/event-stream", "application/json"];

test.each([
  ["without the header, the first", undefined, "application/x-ndjson"],
  ["for everything, the first", "*/*", "application/x-ndjson"],
  ["the one that is named", "text/event-stream", "text/event-stream"],
  ["whatever the case", "Text/Event-Stream; charset=utf-8", "text/event-stream"],
  ["the one of a kind", "text/*", "text/event-stream"],
  ["a named one before one by a wildcard", "application/json, */*", "application/json"],
  ["by quality", "application/json;q=0.5, text/event-stream;q=0.501", "text/event-stream"],
  ["by quality before names", "application/json;q=0.1, */*;q=0.9", "application/x-ndjson"],
  ["none that is excluded", "*/*, application/x-ndjson;q=0", "text/event-stream"],
  ["none of which there is nothing", "image/png", undefined],
  ["none by a quality that is none", "application/json;q=x", undefined],
  ["none by an empty header", "", undefined],
])("chooses %s", (_, accept, chosen) => {
  expect(preferredType(accept, OFFERED)).toBe(chosen);
});
