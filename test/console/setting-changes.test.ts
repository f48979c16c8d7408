import { describe, expect, it } from "vitest";
import { changesOf } from "../../src/console/app/pages/deployments/setting-changes.ts";

const event = (action: string, details: Record<string, string> = {}) => ({
  action: `deployment.${action}`,
  details,
});

describe("the history of a deployment", () => {
  it("tells each changed setting by its label, with the value before where an event has it", () => {
    const before = [event("update", { memory_mib: "512" }), event("update", { memory_mib: "256" })];
    expect(changesOf(event("update", { memory_mib: "640", place: "remote" }), before)).toEqual([
      { what: "Memory:", was: "512 MiB", is: "640 MiB" },
      { what: "Workers run on:", is: "remote" },
    ]);
  });

  it("tells of authorization where it changes", () => {
    const before = [event("deploy", { authorization: "false" })];
    const same = { authorization: "false", cpu: "2" };
    expect(changesOf(event("update", same), before)).toEqual([{ what: "Processors:", is: "2" }]);
    expect(changesOf(event("update", { authorization: "true" }), before)).toEqual([
      { what: "Callers:", was: "Public", is: "Protected" },
    ]);
  });

  it("names secrets and variables, without values", () => {
    expect(
      changesOf(event("update_secrets", { secrets: "A B", removed_secrets: "C" }), []),
    ).toEqual([
      { what: "Set secrets", is: "A, B" },
      { what: "Deleted secrets", is: "C" },
    ]);
  });

  it("says which revision was deployed or brought back, and names what it does not know", () => {
    expect(changesOf(event("deploy", { revision: "4", digest: "d" }), [])).toEqual([
      { what: "Deployed revision", is: "4" },
    ]);
    expect(changesOf(event("roll_back", { revision: "5", to: "3" }), [])).toEqual([
      { what: "Rolled back to revision", is: "3" },
    ]);
    expect(changesOf(event("renamed"), [])).toEqual([{ what: "renamed" }]);
  });
});
