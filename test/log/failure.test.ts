import { expect, it } from "vitest";
import { logFailure } from "../../src/log/log.ts";

it.each([
  ["internal", "error"],
  ["unknown", "error"],
  ["data_loss", "error"],
  ["invalid_argument", "warn"],
  ["not_found", "warn"],
  ["resource_exhausted", "warn"],
])("a function's failure with %s is logged with the level %s", (code, level) => {
  const said: unknown[] = [];
  const at = (name: string) => (fields: object, message: string) =>
    void said.push([name, fields, message]);
  const log = { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  const failure = { reason: "CALL_FAILED", code, message: "no", stack: "Error: no" } as const;
  logFailure(log, failure, { endpoint: "say" }, "a function failed");
  const err = { message: "no", stack: "Error: no" };
  expect(said).toEqual([[level, { endpoint: "say", err }, "a function failed"]]);
});
