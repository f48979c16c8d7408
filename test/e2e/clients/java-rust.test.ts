/** The programs of docs/java.md and docs/rust.md, built from `clients/proto` and run as the pages say. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Program } from "../cli/program.ts";
import { ROOT, run } from "./python-environment.ts";

/** Cold caches mean that the packages are fetched, and in Rust compiled. */
const BUILD_MS = 600_000;

/** Rust with let chains, and Java with switches on arrows. */
const OLDEST = { rust: [1, 88], java: [17, 0] } as const;

/**
 * What is compiled is kept for the next run. Tables for debuggers, and what the next compilation
 * of changed sources would read, are more than half of the processor time.
 */
const CARGO_ENV = {
  CARGO_TARGET_DIR: join(ROOT, "node_modules/.cache/rust"),
  CARGO_PROFILE_DEV_DEBUG: "0",
  CARGO_INCREMENTAL: "0",
};

/** Each run of Maven is short: what its compiler would make faster, it has done by then. */
const MAVEN_ENV = { MAVEN_OPTS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC" };

interface Toolchain {
  readonly page: "java" | "rust";
  /** Where the page says that the program stands. */
  readonly file: string;
  /** What is copied from `clients/<page>`. */
  readonly build: readonly string[];
  /** Prints the version. */
  readonly version: readonly string[];
  readonly run: readonly string[];
  /** The same when it is built. */
  readonly again: readonly string[];
  readonly refusal: RegExp;
}

const TOOLCHAINS: readonly Toolchain[] = [
  {
    page: "rust",
    file: "src/main.rs",
    build: ["Cargo.toml", "Cargo.lock", "build.rs"],
    version: ["cargo", "--version"],
    run: ["cargo", "run", "--quiet", "--locked"],
    again: ["cargo", "run", "--quiet", "--locked"],
    refusal: /Unauthenticated/,
  },
  {
    page: "java",
    file: "src/main/java/Shop.java",
    build: ["pom.xml"],
    version: ["mvn", "--version"],
    run: ["mvn", "-q", "-B", "compile", "exec:java"],
    again: ["mvn", "-q", "-B", "exec:java"],
    refusal: /UNAUTHENTICATED/,
  },
];

/** Why programs cannot be built here, as a suffix of names; these toolchains are not installed in CI. */
function skipped({ page, version: [command = "", ...args] }: Toolchain): string {
  const { stdout } = spawnSync(command, args, { encoding: "utf8" });
  const found = (page === "java" ? /Java version: (\d+)(?:\.(\d+))?/ : /cargo (\d+)\.(\d+)/).exec(
    stdout ?? "",
  );
  const [major = 0, minor = 0] = (found ?? []).slice(1).map((digits) => Number(digits ?? 0));
  const [oldestMajor, oldestMinor] = OLDEST[page];
  const isNewEnough = major > oldestMajor || (major === oldestMajor && minor >= oldestMinor);
  return isNewEnough
    ? ""
    : ` (skipped: there is no ${command} with ${page} ${OLDEST[page].join(".")})`;
}

for (const toolchain of TOOLCHAINS) {
  const { page, file, build } = toolchain;
  const without = skipped(toolchain);
  if (without !== "") {
    console.warn(`docs/${page}.md is not tried:${without}`);
  }
  describe.skipIf(without)(`docs/${page}.md${without}`, () => {
    const text = readFileSync(join(ROOT, `docs/${page}.md`), "utf8");
    const blocks = new RegExp(
      `\`\`\`${page}\n([^\`]*tessera serve[^\`]*)\`\`\`\n\n\`\`\`text\n([^\`]*)`,
    );
    const [, program = "", prints = ""] = blocks.exec(text) ?? [];
    const [, service = "", token = ""] = /tessera serve (\S+) --token (\S+)\n/.exec(program) ?? [];
    let folder: string;
    let server: Awaited<ReturnType<typeof Program.serve>>;

    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), `tessera-${page}-`));
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), program);
      for (const name of build) {
        cpSync(join(ROOT, "clients", page, name), join(folder, name));
      }
      cpSync(join(ROOT, "clients/proto"), join(folder, "proto"), { recursive: true });
      server = await Program.serve([join(ROOT, service), "--token", token], { limitMs: BUILD_MS });
    });
    afterAll(async () => {
      await server.program[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    });

    const start = ([command = "", ...args]: readonly string[], TESSERA_TOKEN: string) => {
      const TESSERA_ADDRESS = new URL(server.url).host;
      const called = { TESSERA_ADDRESS, TESSERA_TOKEN, no_proxy: "127.0.0.1" };
      return run(command, args, { cwd: folder, env: { ...CARGO_ENV, ...MAVEN_ENV, ...called } });
    };

    it("submits, watches and fetches with a token", { timeout: BUILD_MS }, async () => {
      // Maven resets the colours of a terminal, also where there is none.
      expect(stripVTControlCharacters(await start(toolchain.run, token))).toBe(prints);
    });

    it("is refused with another token", { timeout: BUILD_MS }, async () => {
      await expect(start(toolchain.again, "somebody-elses")).rejects.toThrow(toolchain.refusal);
    });

    it("shows the build file that the example has", () => {
      const script = build.find((name) => name.endsWith(".rs"));
      if (script !== undefined) {
        expect(text).toContain(readFileSync(join(ROOT, "clients", page, script), "utf8"));
      }
    });
  });
}
