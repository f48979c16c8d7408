import { describe, expect, it } from "vitest";
import { WorkerProcess } from "./process.ts";

const PLACE = "/fixtures/services/refused/";

const REFUSALS: readonly [file: string, message: RegExp][] = [
  ["no-service.ts", /no-service\.ts exports no service; it needs a default export/],
  ["named-export.ts", /named-export\.ts exports its service as mine; export it as default/],
  ["undecorated-class.ts", /has a default export that is not a service; decorate the class/],
  ["throws-at-import.ts", /throws-at-import\.ts:6:9: RangeError: the weights are torn$/],
  ["setup-throws.ts", /setup-throws\.ts:6:11: no model here$/],
  ["ready-throws.ts", /ready-throws\.ts:6:11: the index is torn$/],
  [
    "ready-says-nothing.ts",
    /ready-says-nothing\.ts: ready returned undefined; it returns true, or/,
  ],
  ["exits.ts", /exits\.ts: the process exited with code 3 while loading$/],
  ["missing-package.ts", /cannot find a-package-that-is-not-installed; install it/],
  [
    "reserved-name.ts",
    /reserved-name\.ts:3:\d+: service "reserved", endpoint "submit": .*reserved/,
  ],
  ["reserved-file-name.ts", /endpoint "schema\.json": this name is reserved/],
  ["two-names.ts", /two-names\.ts:4:\d+: service "two-names": two endpoints named go$/],
  ["two-methods.js", /two-methods\.js:12:\d+: @task go: two endpoints named go/],
  ["no-endpoints.ts", /service "no-endpoints": has no endpoints/],
  ["bad-name.ts", /service "Not A Label": the name must be a DNS label/],
  ["bad-duration.ts", /endpoint "go": timeout must be .* from 1ms to 1d, not "25h"$/],
  ["no-json-schema.ts", /endpoint "go": .*wrap it: withJsonSchema\(.*toStandardJsonSchema/],
  ["not-an-object.ts", /endpoint "go": input must be a schema of one object, .*not string$/],
  ["nested-file.ts", /endpoint "go": argument page has a file inside/],
];

describe("a worker refuses a service that is wrong, in one line with the place", () => {
  it.each(REFUSALS)("%s", async (file, expected) => {
    const { worker, answer } = await WorkerProcess.load(`refused/${file}`);
    await using _ = worker;
    expect(answer.type).toBe("refused");
    const message = answer.type === "refused" ? answer.message : "";
    expect(message).toMatch(expected);
    expect(message).not.toMatch(/\n/);
    expect(message).toContain(PLACE);
    expect(await worker.exited).toBeGreaterThan(0);
    expect(worker.stderr).toBe("");
  });
});
