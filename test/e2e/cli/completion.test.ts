/** Completion as shells ask for it: the scripts in bash, zsh and fish, and what a platform has. */
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Person } from "./person.ts";

const ENTRY = fileURLToPath(new URL("entry.ts", import.meta.url));
let folder: string;
let ada: Person;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-completion-"));
  const program = join(folder, "tessera");
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${ENTRY}" "$@"\n`);
  chmodSync(program, 0o755);
  writeFileSync(join(folder, "service.ts"), "");
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
  });

  it("is silent where it knows nothing, nobody is logged in or nothing answers", async () => {
    expect(await complete("nothing", "")).toEqual([]);
    expect(await complete("deployment", "get", "")).toEqual([]);
    expect(await complete("call", "--url", "http://127.0.0.1:1", "")).toEqual([]);
  });
});

const SHELLS = {
  bash: (words: readonly string[]) => [
    "-c",
    `source <(tessera completion bash); COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")})
     COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); _tessera tessera; printf '%s\\n' "\${COMPREPLY[@]}"`,
  ],
  fish: (words: readonly string[]) => [
    "-c",
    `tessera completion fish | source; complete -C '${words.join(" ")}'`,
  ],
} as const;

function isInstalled(shell: string): boolean {
  try {
    execFileSync(shell, ["-c", "true"]);
    return true;
  } catch {
    return false;
  }
}

async function inShell(shell: keyof typeof SHELLS, words: readonly string[]): Promise<string[]> {
  const { stdout } = await promisify(execFile)(shell, SHELLS[shell](words), {
    cwd: folder,
    env: { PATH: `${folder}:${process.env.PATH}`, HOME: folder, XDG_CONFIG_HOME: folder },
  });
  return stdout.split("\n").flatMap((line) => (line === "" ? [] : [line.split("\t", 1)[0] ?? ""]));
}

describe.each(Object.keys(SHELLS) as (keyof typeof SHELLS)[])("the script for %s", (shell) => {
  // Every machine that builds this has bash; the others are tested where they are.
  it.skipIf(shell !== "bash" && !isInstalled(shell))("completes in it", async () => {
    expect((await inShell(shell, ["tessera", "deplo"])).toSorted()).toEqual([
      "deploy",
      "deployment",
    ]);
    expect(await inShell(shell, ["tessera", "task", "list", "--status", "can"])).toEqual([
      "cancelled",
    ]);
    expect(await inShell(shell, ["tessera", "serve", "serv"])).toEqual(["service.ts"]);
  });
});

it("replaces only what follows the = that bash splits words at", async () => {
  const words = ["tessera", "task", "list", "--status", "=", "can"];
  expect(await inShell("bash", words)).toEqual(["cancelled"]);
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

it("says how to install it", async () => {
  const { stdout } = await ada.run(["completion", "--help"]);
  for (const line of ["source <(tessera completion bash)", "_tessera", "tessera.fish"]) {
    expect(stdout).toContain(line);
  }
});
