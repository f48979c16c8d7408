import { cp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../../src/artifacts/build-options.ts";
import { Project, serviceSource } from "../../artifacts/project.ts";
import { callBuilt, resultValue } from "../../artifacts/running.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

function pathsOf({ index }: BuiltArtifact): string[] {
  return index.files.map(({ path }) => path);
}

function textOf({ files }: BuiltArtifact, path: string): string {
  return String(files.get(path));
}

describe("an artifact of an example", () => {
  it("has the summarizer with its packages in one module", async () => {
    const { built, result } = await callBuilt(
      join(ROOT, "examples/summarizer/service.ts"),
      "summarize",
      { json: JSON.stringify({ text: "One thing. Another thing.", sentences: 1 }) },
    );
    expect(pathsOf(built)).toEqual(["service.js", "service.js.map"]);
    expect(built.index.name).toBe("summarizer");
    expect(built.index.platform).toBeUndefined();
    expect(built.index.service.endpoints.map(({ name }) => name)).toEqual([
      "summarize",
      "summarize_batch",
    ]);
    expect(resultValue(result)).toMatch(/thing\.$/);
  });

  it("has the weights that digits reads, and reads a picture with them", async () => {
    const examples = join(ROOT, "examples/digits");
    const data = await readFile(join(examples, "images/3-a.png"));
    const { built, result } = await callBuilt(join(examples, "service.ts"), "classify", {
      json: '{"image":0}',
      files: [{ contentType: "image/png", filename: "3-a.png", data }],
    });
    expect(pathsOf(built)).toEqual(["service.js", "service.js.map", "weights.bin"]);
    expect(resultValue(result)).toMatchObject({ digit: 3 });
  });
});

describe("the same source", () => {
  it("gives the same artifact wherever it lies, whatever lies around it", async () => {
    await using first = await Project.create({}, "one-");
    await using second = await Project.create({ "deep/in/here.txt": "" }, "another-");
    const places = [first.path("digits"), second.path("deep/in/digits")];
    const digests: string[] = [];
    for (const place of places) {
      await cp(join(ROOT, "examples/digits"), place, { recursive: true });
    }
    for (const name of ["zod", "pngjs"]) {
      const copy = join(ROOT, "node_modules", name);
      // Above it here, in it there.
      await cp(copy, first.path(`node_modules/${name}`), { recursive: true });
      await cp(copy, second.path(`deep/in/digits/node_modules/${name}`), { recursive: true });
    }
    for (const place of places) {
      const built = await buildArtifact(join(place, "service.ts"));
      for (const source of built.files.values()) {
        if (typeof source !== "string") {
          expect(String(source)).not.toContain(place);
          expect(String(source)).not.toMatch(/\.\.\/node_modules/);
        }
      }
      digests.push(built.digest);
    }
    expect(digests[1]).toBe(digests[0]);
  });
});

describe("a module in an artifact", () => {
  it("sees itself, and what lies around it, at the same relative place", async () => {
    await using project = await Project.create({
      "package.json": "{}",
      "services/reader/service.ts": serviceSource(
        "[readFileSync(new URL('words.txt', import.meta.url), 'utf8'), shared(), import.meta.filename, import.meta.dirname]",
        'import { readFileSync } from "node:fs";\nimport { shared } from "../../library/shared.ts";',
      ),
      "services/reader/words.txt": "words",
      "services/reader/.env": "SECRET=1",
      "library/shared.ts":
        'import { readFileSync } from "node:fs";\nimport { join } from "node:path";\n' +
        "export const shared = (): unknown =>\n" +
        '  [readFileSync(join(import.meta.dirname, "data", "more.txt"), "utf8"), import.meta.url];\n',
      "library/data/more.txt": "more",
      "library/data/unread.txt": "unread",
    });
    const { built, result, folder } = await callBuilt(
      project.path("services/reader/service.ts"),
      "go",
    );
    expect(pathsOf(built)).toEqual([
      "library/data/more.txt",
      "service.js",
      "service.js.map",
      "services/reader/words.txt",
    ]);
    expect(resultValue(result)).toEqual([
      "words",
      ["more", `file://${folder}/library/shared.ts`],
      join(folder, "services/reader/service.ts"),
      join(folder, "services/reader"),
    ]);
  });

  it("is named in stack traces by its place in the source", async () => {
    await using project = await Project.create({
      "service.ts": serviceSource("fail()", 'import { fail } from "./parts/broken.ts";'),
      "parts/broken.ts":
        "interface Unused { a: string }\n\nexport function fail(): never {\n  throw new Error('broken');\n}\n",
    });
    const { result, folder } = await callBuilt(project.path("service.ts"), "go");
    expect(result).toMatchObject({
      failure: {
        message: "broken",
        stack: expect.stringContaining(`${folder}/parts/broken.ts:4:9`),
      },
    });
  });

  it("does not take hidden files along when a folder is read as a whole", async () => {
    await using project = await Project.create({
      "service.ts": serviceSource(
        "readFileSync(join(import.meta.dirname, 'texts', String(Math.min(0, 1)) + '.txt'), 'utf8')",
        'import { readFileSync } from "node:fs";\nimport { join } from "node:path";',
      ),
      "texts/0.txt": "zero",
      "texts/.env": "SECRET=1",
    });
    const { built, result } = await callBuilt(project.path("service.ts"), "go");
    expect(pathsOf(built)).toEqual(["service.js", "service.js.map", "texts/0.txt"]);
    expect(resultValue(result)).toBe("zero");
  });
});

describe("what tracing cannot see", () => {
  const files = {
    "service.ts": serviceSource(
      "text",
      'import { readFileSync } from "node:fs";\nconst name = Buffer.from("aGlkZGVuLnR4dA", "base64").toString();\n' +
        'const text = readFileSync(new URL(name, import.meta.url), "utf8");',
    ),
    "hidden.txt": "found",
    "more/deep/other.txt": "other",
  };

  it("is named when the service does not load without it", async () => {
    await using project = await Project.create(files);
    const built = buildArtifact(project.path("service.ts"));
    await expect(built).rejects.toThrow("does not load from its artifact");
    await expect(built).rejects.toThrow(
      "hidden.txt is not in the artifact, and the service needs it when it is loaded",
    );
    await expect(built).rejects.toThrow("--include hidden.txt adds it");
    await expect(built).rejects.toThrow(project.path("service.ts:3:"));
  });

  it("is put in by pattern or folder", async () => {
    await using project = await Project.create(files);
    const { built, result } = await callBuilt(project.path("service.ts"), "go", {
      include: ["hid*.txt", "more"],
    });
    expect(pathsOf(built)).toContain("more/deep/other.txt");
    expect(resultValue(result)).toBe("found");
  });

  it("is asked back when the pattern fits nothing", async () => {
    await using project = await Project.create(files);
    await expect(buildArtifact(project.path("service.ts"), { include: ["*.bin"] })).rejects.toThrow(
      `--include *.bin fits no file; it is read from the service's folder`,
    );
  });
});

describe("what is hidden or outside the project", () => {
  it("is left out, with a warning, unless it is asked for", async () => {
    await using project = await Project.create({
      "data.txt": "outside",
      "part/package.json": "{}",
      "part/service.ts": serviceSource(
        "['.env', '../data.txt'].length + read.length",
        'import { readFileSync } from "node:fs";\nconst read = () => ["/etc/hosts",\n' +
          '  readFileSync(new URL(".env", import.meta.url)),\n  readFileSync(new URL("../data.txt", import.meta.url))];',
      ),
      "part/.env": "SECRET=1",
    });
    const path = project.path("part/service.ts");
    const built = await buildArtifact(path);
    expect(pathsOf(built)).toEqual(["service.js", "service.js.map"]);
    expect(built.warnings).toEqual([
      expect.stringContaining("the service reads ../data.txt, which is hidden or outside"),
      expect.stringContaining("--include .env puts it in"),
    ]);
    const whole = await buildArtifact(path, { include: ["../data.txt", ".env"] });
    expect(pathsOf(whole)).toEqual(["data.txt", "part/.env", "service.js", "service.js.map"]);
    expect(whole.warnings).toEqual([]);
    await expect(buildArtifact(path, { include: ["/etc/hosts"] })).rejects.toThrow("is absolute");
  });
});

describe("a service that does not load", () => {
  it("is refused with what it wrote", async () => {
    await using project = await Project.create({
      "service.ts": serviceSource(
        "1",
        'console.log("connecting");\nif (true as boolean) throw new TypeError("no model");',
      ),
    });
    const built = buildArtifact(project.path("service.ts"));
    await expect(built).rejects.toThrow(`${project.path("service.ts:2:")}`);
    await expect(built).rejects.toThrow("TypeError: no model");
    await expect(built).rejects.toThrow("the service wrote:\n  connecting");
  });

  it("is refused when it reads what no deployed service may", async () => {
    await using project = await Project.create({
      "service.ts": serviceSource(
        "1",
        'import { readFileSync } from "node:fs";\nreadFileSync(import.meta.dirname.slice(0, 1) + "etc/hosts");',
      ),
    });
    await expect(buildArtifact(project.path("service.ts"))).rejects.toThrow(
      /reading \/etc\/hosts is not allowed in a worker; --include takes files of .* along$/,
    );
  });

  it("is refused when it takes too long", async () => {
    await using project = await Project.create({
      "service.ts": serviceSource("1", "await new Promise((done) => setTimeout(done, 60_000));"),
    });
    await expect(
      buildArtifact(project.path("service.ts"), { readyTimeoutMs: 1_500 }),
    ).rejects.toThrow("was not ready after 1.5 s");
  });

  it("loads when it gets the environment that it asks for", async () => {
    await using project = await Project.create({
      "service.ts": serviceSource(
        "1",
        'if (!process.env.MODEL) throw new Error("MODEL is not set");',
      ),
    });
    const path = project.path("service.ts");
    await expect(buildArtifact(path)).rejects.toThrow("MODEL is not set");
    const built = await buildArtifact(path, { env: { MODEL: "small" } });
    expect(textOf(built, "service.js")).not.toContain("small");
  });
});

describe("a service that imports the SDK by its former name", () => {
  it("is not built, and told the name to write instead", async () => {
    const source = serviceSource("1").replace('"tessera-platform"', '"tessera"');
    await using project = await Project.create({ "service.ts": source });
    await expect(buildArtifact(project.path("service.ts"))).rejects.toThrow(
      /^service\.ts:2:\d+: Could not resolve "tessera": import from "tessera-platform" instead$/,
    );
  });

  it("still loads from an artifact that an earlier version has built", async () => {
    await using project = await Project.create({ "service.ts": serviceSource("42") });
    const { built, result } = await callBuilt(project.path("service.ts"), "go", {
      edit: (code) => code.replace('from "tessera-platform"', 'from "tessera"'),
    });
    expect(textOf(built, "service.js")).toContain('from "tessera-platform"');
    expect(resultValue(result)).toBe(42);
  });
});
