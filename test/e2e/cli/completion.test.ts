/** Completion as shells ask for it: the scripts in bash, zsh and fish, and what a platform has. */
import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Person } from "./person.ts";
import { type Scene, scene } from "./platform-person.ts";
import { Program } from "./program.ts";
import { isInstalled, ShellTerminal } from "./shell-terminal.ts";

const ENTRY = fileURLToPath(new URL("entry.ts", import.meta.url));
let folder: string;
let ada: Person;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-completion-"));
  const program = join(folder, "tessera");
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${ENTRY}" "$@"\n`);
  chmodSync(program, 0o755);
  mkdirSync(join(folder, "pictures"));
  for (const name of ["service.ts", "see me.png", "pictures/one.png"]) {
    writeFileSync(join(folder, name), "");
  }
  ada = new Person();
});
afterAll(() => {
  ada[Symbol.dispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** The words that complete the last of these. */
async function complete(...words: readonly string[]): Promise<string[]> {
  const { code, stdout, stderr } = await ada.run(["complete", "--", ...words]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout.split("\n").flatMap((line) => (line === "" ? [] : [line.split("\t", 1)[0] ?? ""]));
}

describe("completion", () => {
  it("knows commands, and those below them", async () => {
    expect(await complete("de")).toEqual(["dev", "deploy", "deployment"]);
    expect(await complete("")).not.toContain("complete");
    expect(await complete("task", "st")).toEqual(["status", "stats"]);
    expect(await complete("help", "toke")).toEqual(["token"]);
    expect(await complete("member", "invitations", "")).toEqual(["list", "withdraw"]);
  });

  it("knows flags, and the choices of those that have some", async () => {
    expect(await complete("--v")).toEqual(["--version"]);
    expect(await complete("task", "list", "--st")).toEqual(["--status"]);
    expect(await complete("task", "list", "--status", "q")).toEqual(["queued"]);
    expect(await complete("task", "list", "--status=q")).toEqual(["--status=queued"]);
    expect(await complete("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(await complete("member", "set-role", "ada@example.com", "")).toEqual([
      "member",
      "admin",
    ]);
  });

  it("asks for names of files where one is meant", async () => {
    expect(await complete("serve", "")).toEqual([":files"]);
    expect(await complete("call", "greet", "--output-file", "")).toEqual([":files"]);
    expect(await complete("serve", "service.ts", "--port", "")).toEqual([]);
    expect(await complete("call", "greet", "@")).toEqual([":files @"]);
    expect(await complete("call", "greet", "image=@a")).toEqual([":files image=@"]);
    expect(await complete("task", "submit", "greet", "image=@a")).toEqual([":files image=@"]);
    expect(await complete("deploy", ".", "--secret=KEY=@")).toEqual([":files --secret=KEY=@"]);
    expect(await complete("deploy", ".", "--env", "KEY=@")).toEqual([]);
  });

  it("is silent where it knows nothing, nobody is logged in or nothing answers", async () => {
    expect(await complete("nothing", "")).toEqual([]);
    expect(await complete("deployment", "get", "")).toEqual([]);
    expect(await complete("call", "--url", "http://127.0.0.1:1", "")).toEqual([]);
  });
});

/** A line as it is typed up to the tab key, and as it stands then. */
const LINES = [
  ["tessera deploym", "tessera deployment "],
  ["tessera task list --status can", "tessera task list --status cancelled "],
  ["tessera task list --status=can", "tessera task list --status=cancelled "],
  ["tessera serve serv", "tessera serve service.ts "],
  ["tessera call --output-file=serv", "tessera call --output-file=service.ts "],
  ["tessera call greet @serv", "tessera call greet @service.ts "],
  ["tessera call greet image=@see", "tessera call greet image=@see\\ me.png "],
  ["tessera call greet image=@pic", "tessera call greet image=@pictures/"],
  ["tessera call greet image=@pictures/on", "tessera call greet image=@pictures/one.png "],
  ["tessera deploy . --secret KEY=@serv", "tessera deploy . --secret KEY=@service.ts "],
] as const;

describe.each(["bash", "zsh"] as const)("the script for %s", (shell) => {
  // Every machine that builds this has bash; the others are tested where they are.
  it.skipIf(shell !== "bash" && !isInstalled(shell))(
    "completes what is typed at a terminal",
    { timeout: 60_000 },
    async () => {
      await using terminal = await ShellTerminal.start(shell, folder);
      for (const [typed, completed] of LINES) {
        await terminal.typed(`${typed}\t`, completed);
      }
    },
  );
});

it.skipIf(!isInstalled("fish"))("the script for fish completes in it", async () => {
  for (const [typed, completed] of LINES) {
    const script = `tessera completion fish | source; complete -C '${typed}'`;
    const { stdout } = await promisify(execFile)("fish", ["-c", script], {
      cwd: folder,
      env: { PATH: `${folder}:${process.env.PATH}`, HOME: folder, XDG_CONFIG_HOME: folder },
    });
    const words = stdout.split("\n").map((line) => line.split("\t", 1)[0]);
    // Fish quotes when it puts the word in.
    const [word] = completed
      .replaceAll("\\", "")
      .trimEnd()
      .split(/ (?!me)/)
      .slice(-1);
    expect(words, typed).toContain(word);
  }
});

it.skipIf(!isInstalled("zsh"))("the script for zsh is one that zsh can read", async () => {
  const { stdout } = await ada.run(["completion", "zsh"]);
  const path = join(folder, "_tessera");
  writeFileSync(path, stdout);
  await promisify(execFile)("zsh", ["-n", path]);
  const check = `autoload -U compinit; compinit -u; source ${path}; print $_comps[tessera]`;
  const shell = await promisify(execFile)("zsh", ["-fc", check], {
    env: { PATH: process.env.PATH, HOME: folder, ZDOTDIR: folder },
  });
  expect(shell.stdout.trim()).toBe("_tessera");
});

describe("completion of names, for somebody who is logged in", () => {
  let acme: Scene;
  beforeAll(async () => {
    acme = await scene();
  });
  afterAll(() => acme[Symbol.asyncDispose]());

  async function names(...words: readonly string[]): Promise<string[]> {
    const { stdout } = await acme.ada.run(["complete", "--", ...words]);
    return stdout
      .split("\n")
      .flatMap((line) => (line === "" ? [] : [line.split("\t", 1)[0] ?? ""]));
  }

  it("has organizations, members and invitations", async () => {
    expect(await names("org", "get", "")).toEqual(["acme"]);
    expect(await names("token", "list", "--organization", "a")).toEqual(["acme"]);
    expect(await names("member", "remove", "")).toEqual(["ada@example.com"]);
    expect(await names("audit", "list", "--actor=a")).toEqual(["--actor=ada@example.com"]);
    expect(await names("member", "set-role", "b")).toEqual([]);
    const invitation = { organization: "acme", email: "bob@example.com", role: "ROLE_MEMBER" };
    const invited = await acme.platform.call("/api/v1/members:invite", invitation, acme.adaCookie);
    expect(invited.status).toBe(200);
    expect(await names("member", "invitations", "withdraw", "")).toEqual(["bob@example.com"]);
  });

  it("has tokens by their name, or by their id where that is no word for one token", async () => {
    for (const name of ["ci", "twice", "twice"]) {
      await acme.platform.createToken(acme.adaCookie, { name });
    }
    const found = await names("token", "get", "");
    expect(found).toContain("ci");
    expect(found).not.toContain("twice");
    // Two that are called the same, and ada's laptop, which has a space.
    expect(found.filter((word) => /^[\da-f]{8}-/.test(word))).toHaveLength(3);
    expect(await names("token", "delete", "c")).toEqual(["ci"]);
    expect(await names("call", "greet", "--token", "")).toEqual([]);
  });
});

it("has the arguments of an endpoint that are not given yet", { timeout: 60_000 }, async () => {
  const service = fileURLToPath(
    new URL("../../../examples/summarizer/service.ts", import.meta.url),
  );
  const { program, url } = await Program.serve([service]);
  await using _ = program;
  const call = ["call", "--url", url, "summarize"];
  expect(await complete(...call, "")).toEqual(["text=", "sentences="]);
  expect(await complete(...call, "text=hello", "")).toEqual(["sentences="]);
  expect(await complete(...call, "te")).toEqual(["text="]);
});

it("says how to install it", async () => {
  const { stdout } = await ada.run(["completion", "--help"]);
  for (const line of ["source <(tessera completion bash)", "_tessera", "tessera.fish"]) {
    expect(stdout).toContain(line);
  }
});
