import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  isInPython,
  nodeModule,
  type ProgramService,
  programContent,
  pythonModule,
} from "../../src/artifacts/program.ts";

describe("a service that is a program", () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "tessera-program-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const program = (changes: Partial<ProgramService> = {}): ProgramService => ({
    ...{ name: "llm", source: join(folder, "tessera.yaml"), folder },
    command: ["./serve", 'ü \u{1f600} " \\ \n', "{port}"],
    ...changes,
  });

  it("is one in Python where it needs packages, or Python and no image", async () => {
    const python = program({ command: ["python3", "server.py"] });
    expect(await isInPython(program(), undefined)).toBe(false);
    expect(await isInPython(python, undefined)).toBe(true);
    expect(await isInPython(python, "debian:12")).toBe(false);
    writeFileSync(join(folder, "pyproject.toml"), "[tool.ruff]\n");
    expect(await isInPython(program(), undefined)).toBe(false);
    writeFileSync(join(folder, "requirements.txt"), "vllm\n");
    expect(await isInPython(program(), undefined)).toBe(true);
    expect(await isInPython(program(), "debian:12")).toBe(true);
  });

  it("has code of a few lines in both languages", () => {
    const given = program({
      port: 8000,
      health: "/health",
      timeout: "5m",
      concurrency: 7,
      ratePerKey: "5/s",
      queue: true,
    });
    const said = JSON.stringify(given.command);
    expect(nodeModule(given)).toContain(
      `"mounts":{"/":{"command":${said},"port":8000,"health":"/health","timeout":"5m","concurrency":7,"ratePerKey":"5/s","queue":true}}`,
    );
    expect(pythonModule(given)).toContain(
      `mount("/", command=${said}, port=8000, health="/health", timeout="5m", concurrency=7, rate_per_key="5/s", queue=True)`,
    );
  });

  it.each([
    [{ command: ["a\0b"] }, "command must be a list of texts"],
    [{ command: ["a", "x".repeat(10_000)] }, "of at most 8192 bytes"],
    [{ port: 70_000 }, "port must be a whole number from 1 to 65535"],
    [{ health: "well" }, "health must be a path"],
  ])("is refused by the file that names it: %#", (changes, said) => {
    for (const write of [nodeModule, pythonModule]) {
      expect(() => write(program(changes))).toThrow(said);
      expect(() => write(program(changes))).toThrow(join(folder, "tessera.yaml"));
    }
  });

  it("has the files that are named, from its own folder", async () => {
    writeFileSync(join(folder, "serve"), "#!");
    const content = await programContent(program(), ["serve"]);
    expect([...content.keys()].toSorted()).toEqual(["serve", "service.js"]);
    await expect(programContent(program(), ["../../etc/hostname"])).rejects.toThrow("is outside");
  });
});
