import { Command } from "commander";
import { describe, expect, it } from "vitest";
import { FlagWords } from "../../src/cli/flag-words.ts";

const create = new Command("create")
  .argument("<name>")
  .option("--deployment <name>")
  .option("--all-deployments")
  .option("--expires <when>")
  .option("--workers <min..max>");

const said = (field: string, description: string, command: Command | undefined = create) =>
  new FlagWords(command).ofViolation({ field, description });

describe("what a server says of a field", () => {
  it("is said of the flag", () => {
    expect(said("expires_at", "must be in the future")).toBe("--expires must be in the future");
    expect(said("settings.max_workers", "must be at most 10")).toBe("--workers must be at most 10");
    expect(said("deployments.0", "is no name")).toBe("--deployment is no name");
  });

  it("is said of the argument where there is no flag", () => {
    expect(said("name", "is taken")).toBe("<name> is taken");
  });

  it("names no fields in the sentence either", () => {
    expect(said("deployments", "must name a deployment, or set all_deployments")).toBe(
      "--deployment must name a deployment, or set --all-deployments",
    );
    expect(said("deployments", "protected_endpoint access is for them")).toBe(
      "--deployment protected endpoint access is for them",
    );
  });

  it("names the measures of usage as they are given", () => {
    expect(said("budget.name", "must be calls, run_seconds, gpu_seconds or bytes_in")).toBe(
      "<name> must be calls, run_seconds, gpu_seconds or bytes_in",
    );
  });

  it("is in our own words where the validator has its own", () => {
    expect(
      said("window", "must be greater than or equal to 60s and less than or equal to 86400s"),
    ).toBe("window: must be from 1m to 24h");
    expect(said("expires_at", "must be less than or equal to 5")).toBe(
      "--expires must be at most 5",
    );
    expect(said("name", "value length must be at least 1 characters")).toBe(
      "<name> must have at least 1 character",
    );
  });

  it("keeps the name of a field that no flag gives, and needs no command", () => {
    expect(said("other_thing", "is wrong")).toBe("other_thing: is wrong");
    expect(new FlagWords(undefined).ofViolation({ field: "", description: "is wrong" })).toBe(
      "is wrong",
    );
  });
});
