import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ExitCode } from "../../../src/cli/failure.ts";
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
  secret: ["list", "set", "delete"],
  schedule: ["list", "create", "update", "delete", "pause", "resume", "run"],
  webhook: [...["list", "create", "update", "delete", "rotate", "test", "deliveries", "redeliver"]],
  alert: ["list", "create", "update", "silence", "delete", "history"],
  "alert receiver": [
    ...["list", "create", "update", "rotate", "test", "delete", "deliveries", "redeliver"],
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

it("has examples for usage", async () => {
  const { code, stdout } = await person.run(["usage", "--help"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/\nExamples:\n {2}\$ tessera usage\n/);
});

it("has examples for budget create", async () => {
  const { code, stdout } = await person.run(["budget", "create", "--help"]);
  expect(code).toBe(0);
  expect(stdout).toMatch(/\nExamples:\n {2}\$ tessera budget create gpus gpu_seconds 36000\n/);
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

describe("the topics of the help", () => {
  it.each([
    ["environment", "SERVICE_CLOUD_API_KEY"],
    ["exit-codes", "4    not found"],
  ])("has %s, also as a command", async (topic, text) => {
    for (const args of [["help", topic], [topic], [topic, "--help"]]) {
      const { code, stdout, stderr } = await person.run(args);
      expect({ code, stderr }, args.join(" ")).toEqual({ code: 0, stderr: "" });
      expect(stdout).toContain(text);
      expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
    }
  });

  it("are named by the program's help, and are not among its commands", async () => {
    const { stdout } = await person.run(["--help"]);
    expect(stdout).toContain("tessera help environment");
    expect(stdout).not.toMatch(/^ {2}environment/m);
  });

  it("say the same of exit codes as the help of commands, and docs/cli.md", async () => {
    const { stdout } = await person.run(["exit-codes"]);
    const page = readFileSync(new URL("../../../docs/cli.md", import.meta.url), "utf8");
    const inPage = [...page.matchAll(/^\| (\d+) \| (.+) \|$/gm)].map(([, code, text]) => [
      code,
      text,
    ]);
    const said = [...stdout.matchAll(/^ {2}(\d+) +(.+)$/gm)].map(([, code, text]) => [code, text]);
    expect(said).toEqual(inPage);
    expect(said.map(([code]) => Number(code))).toEqual(Object.values(ExitCode));
  });
});
