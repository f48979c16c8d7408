import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gitSource } from "../../../src/cli/deploy/git.ts";

describe("where code is in git", () => {
  let folder: string;
  const { signal } = new AbortController();
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", ...args], {
      cwd: folder,
      encoding: "utf8",
    });
  const source = (path: string) => gitSource(join(folder, path), { env: process.env, signal });

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "tessera-test-git-"));
    mkdirSync(join(folder, "service"));
    writeFileSync(join(folder, "service", "service.ts"), "one");
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it("is not told where there is no repository, no commit, and no such folder", async () => {
    expect(await source("service/service.ts")).toBeUndefined();
    git("init", "--quiet", "--initial-branch", "main");
    expect(await source("service/service.ts")).toBeUndefined();
    expect(await source("nowhere/service.ts")).toBeUndefined();
  });

  it("is told as commit, branch and first line, and whether something is not committed", async () => {
    git("add", ".");
    git(
      "commit",
      "--quiet",
      "-m",
      `Read \u001b[31mfaster ${"x".repeat(300)}\n\nBecause it was slow.`,
    );
    const commit = git("rev-parse", "HEAD").trim();
    const told = await source("service/service.ts");
    expect(told).toMatchObject({ commit, branch: "main", dirty: false });
    expect(told?.message).toMatch(/^Read {2}\[31mfaster x+$/);
    expect(told?.message).toHaveLength(200);
    writeFileSync(join(folder, "elsewhere.txt"), "two");
    expect(await source("service")).toMatchObject({ dirty: false });
    writeFileSync(join(folder, "service", "service.ts"), "two");
    expect(await source("service")).toMatchObject({ dirty: true });
    git("checkout", "--quiet", "--detach");
    expect(await source("service")).toMatchObject({ commit, branch: "" });
  });

  it("is told without the remotes, which may have credentials, and starts no program of the repository", async () => {
    git("remote", "add", "origin", "https://ada:swordfish@example.com/acme.git");
    const mark = join(folder, "mark");
    git("config", "core.fsmonitor", `touch ${mark}; true`);
    const told = await source("service");
    expect(JSON.stringify(told)).not.toContain("swordfish");
    expect(() => execFileSync("test", ["-e", mark])).toThrow();
  });
});
