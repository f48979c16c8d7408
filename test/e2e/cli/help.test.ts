import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Person } from "./person.ts";

let person: Person;
beforeAll(() => {
  person = new Person();
});
afterAll(() => person[Symbol.dispose]());

const COMMANDS: Readonly<Record<string, readonly string[]>> = {
  cloud: ["login", "logout", "current-context"],
  token: ["create", "list", "get", "update", "rotate", "reveal", "delete"],
  org: ["create", "list", "get", "update"],
  member: ["list", "invite", "set-role", "remove", "leave"],
  "member invitations": ["list", "withdraw"],
  deployment: [
    ...["create", "list", "get", "watch", "update", "delete"],
    ...["revisions", "rollback", "confirm-secrets", "stop", "start", "logs"],
  ],
  audit: ["list"],
};

describe.each(Object.entries(COMMANDS))("the help of tessera %s", (group, names) => {
  it("names the commands and the exit codes", async () => {
    const { code, stdout, stderr } = await person.run([...group.split(" "), "--help"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const name of names) {
      expect(stdout).toMatch(new RegExp(`^  ${name}\\b`, "m"));
    }
    expect(stdout).toContain("Exit codes:");
  });

  it.each(names)("has examples for %s", async (name) => {
    const { code, stdout } = await person.run([...group.split(" "), name, "--help"]);
    expect(code).toBe(0);
    expect(stdout).toMatch(new RegExp(`\nExamples:\n  \\$ tessera ${group} ${name}\\b`));
  });
});

it("has examples for deploy", async () => {
  const { code, stdout } = await person.run(["deploy", "--help"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/\nExamples:\n {2}\$ tessera deploy service\.ts --name summarizer/);
});

it("warns of tokens on the command line", async () => {
  const { stdout } = await person.run(["cloud", "login", "--help"]);
  expect(stdout).toMatch(/shows the value to everyone who can list this machine's\s+processes/);
  expect(stdout).toContain("SERVICE_CLOUD_API_KEY");
});
