/** The templates of `tessera init`, as they stand in this repository. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { LANGUAGES, nameFor, writeProject } from "../../src/cli/init/project.ts";
import { version } from "../../src/version.ts";

const TEMPLATES = fileURLToPath(new URL("../../templates/", import.meta.url));

describe("tessera init", () => {
  it("names a service by its folder, as a deployment may be called", () => {
    expect(nameFor("Page Reader_2")).toBe("page-reader-2");
    expect(nameFor("42-été")).toBe("ete");
    expect(nameFor("日本")).toBe("my-service");
    expect(nameFor(`${"a".repeat(62)}-b`)).toBe("a".repeat(62));
  });

  it("has templates that ask for this version of the package", () => {
    const read = (path: string) => readFileSync(join(TEMPLATES, path), "utf8");
    expect(read("typescript/package.json")).toContain(`"tessera-platform": "^${version}"`);
    expect(read("python/pyproject.toml")).toContain(`"tessera-platform>=${version}"`);
  });

  it("has a test in TypeScript that passes where it stands", async () => {
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const cwd = join(TEMPLATES, "typescript");
    const { stdout } = await promisify(execFile)(process.execPath, ["--test"], { cwd, env });
    expect(stdout).toMatch(/pass 2\n/);
  });

  it.each(LANGUAGES)("leaves no trace of the template's name in %s", (language) => {
    const above = mkdtempSync(join(tmpdir(), "tessera-init-"));
    try {
      const folder = join(above, "new", "page-reader");
      writeProject({ folder, language, name: "page-reader" });
      const files = readdirSync(folder, { recursive: true, withFileTypes: true });
      for (const file of files.filter((entry) => entry.isFile())) {
        const text = readFileSync(join(file.parentPath, file.name), "utf8");
        expect(text, file.name).not.toContain("my-service");
      }
      expect(existsSync(join(folder, ".github/workflows/ci.yml"))).toBe(true);
      expect(existsSync(join(folder, ".vscode/settings.json"))).toBe(true);
    } finally {
      rmSync(above, { recursive: true });
    }
  });
});
