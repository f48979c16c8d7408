/** What is in a project besides its service's code, and what of it runs while that is built. */
import { existsSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import { installed, Project, serviceSource } from "../../artifacts/project.ts";

describe("a build", () => {
  let project: Project;
  let mark: string;
  beforeEach(async () => {
    project = await Project.create({});
    mark = project.path("ran");
  });
  afterEach(() => project[Symbol.asyncDispose]());

  /** Code that leaves a mark where it may write; elsewhere it says nothing. */
  const marking = (): string =>
    `try { require("node:fs").writeFileSync(${JSON.stringify(mark)}, ""); } catch {}\n`;
  const shell = (): string => `touch ${mark}`;

  const KINDS: Readonly<Record<string, () => Record<string, string>>> = {
    "a tsconfig.json that extends a package's, and names plugins": () => ({
      "tsconfig.json": JSON.stringify({
        extends: "evil-config",
        compilerOptions: { plugins: [{ name: "evil-plugin", transform: "./evil.js" }] },
      }),
      "evil.js": marking(),
      ...installed("node_modules/evil-config", {
        "index.js": marking(),
        "tsconfig.json": JSON.stringify({
          compilerOptions: { plugins: [{ name: "evil-plugin" }] },
        }),
      }),
      ...installed("node_modules/evil-plugin", { "index.js": marking() }),
    }),
    "configurations of bundlers, and their plugins": () => ({
      "esbuild.config.js": marking(),
      "esbuild.config.mjs": `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(mark)}, "");\n`,
      "rollup.config.js": marking(),
      "vite.config.js": marking(),
      ".babelrc.js": marking(),
      ".swcrc": "{}",
    }),
    "scripts of its package": () => ({
      "package.json": JSON.stringify({
        name: "evil",
        type: "module",
        scripts: Object.fromEntries(
          ["preinstall", "install", "postinstall", "prepare", "prebuild", "build", "prepack"].map(
            (name) => [name, shell()],
          ),
        ),
      }),
      ".npmrc": `node-options=--require ${project.path("evil.cjs")}\nscript-shell=${project.path("evil.sh")}\n`,
      "evil.cjs": marking(),
      "evil.sh": `#!/bin/sh\n${shell()}\n`,
      "binding.gyp": `{"targets": [{"target_name": "<!(${shell()})"}]}`,
    }),
    "packages by the names of our tools": () => ({
      ...installed("node_modules/esbuild", { "index.js": marking() }),
      ...installed("node_modules/@vercel/nft", { "index.js": marking() }),
      "node_modules/.bin/esbuild": `#!/bin/sh\n${shell()}\n`,
    }),
  };

  it.each(Object.entries(KINDS))("runs nothing of %s", async (_, files) => {
    await project.write({ "service.ts": serviceSource("41"), ...files() });
    await buildArtifact(project.path("service.ts"));
    expect(existsSync(mark)).toBe(false);
  });

  it("reads code that tsconfig.json extends as JSON, which it is not", async () => {
    await project.write({
      "service.ts": serviceSource("41"),
      "tsconfig.json": JSON.stringify({ extends: "./evil.js" }),
      "evil.js": marking(),
    });
    await expect(buildArtifact(project.path("service.ts"))).rejects.toThrow(
      'evil.js:1:1: Unexpected "try" in JSON',
    );
    expect(existsSync(mark)).toBe(false);
  });

  it.each([
    ["bundled", {}],
    ["that stays files", { scripts: { postinstall: "node index.js" } }],
  ])("runs a package, %s, in a worker only, which may write nothing", async (kind, description) => {
    const dirname = kind === "bundled" ? "" : "void __dirname;\n";
    await project.write({
      "service.ts": serviceSource("dep", 'import dep from "dep";'),
      ...installed(
        "node_modules/dep",
        { "index.js": `${marking()}${dirname}module.exports = 41;\n` },
        description,
      ),
    });
    const { index } = await buildArtifact(project.path("service.ts"));
    expect(index.name).toBe("tried");
    expect(existsSync(mark)).toBe(false);
  });
});
