import { expect, it } from "vitest";
import { FirstLoad } from "../../src/deployments/directory.ts";
import { problem, shuttingDown } from "../../src/errors.ts";

it("holds callers until the service has loaded, and then nobody", async () => {
  const load = new FirstLoad();
  const callers = [load.held(), load.held()];
  load.done();
  await Promise.all(callers);
  expect(load.held()).toBeUndefined();
});

it("tells callers to come back when the service takes too long", async () => {
  const load = new FirstLoad(1);
  await expect(load.held()).rejects.toEqual(
    problem("NO_WORKER", "the service is still loading: try again", { retryAfterMs: 1_000 }),
  );
});

it("refuses callers that wait, and those that follow, when the service cannot be loaded", async () => {
  const load = new FirstLoad();
  const early = load.held();
  load.failed(shuttingDown());
  await expect(early).rejects.toThrow("shutting down");
  await expect(load.held()).rejects.toThrow("shutting down");
});
