import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { installed, Project, serviceSource } from "../../artifacts/project.ts";
import { callBuilt, resultValue } from "../../artifacts/running.ts";

const SERVICES = fileURLToPath(new URL("../../fixtures/services/", import.meta.url));

async function answerOf(files: Readonly<Record<string, string>>) {
  await using project = await Project.create({ "package.json": "{}", ...files });
  const { built, result } = await callBuilt(project.path("service.ts"), "go");
  const paths = built.index.files
    .map(({ path }) => path)
    .filter((path) => !path.startsWith("service.js"));
  return { paths, built, value: resultValue(result) };
}

const READER = `const { readFileSync } = require("fs");
const { join } = require("path");
const counter = require("counter");
module.exports = () => [readFileSync(join(__dirname, "data", "words.txt"), "utf8"), counter.next()];
`;
const COUNTER = "let last = 0;\nexports.next = () => ++last;\n";

/** A package that says its own version. */
const versioned = (folder: string, version: string) =>
  installed(
    folder,
    { "index.js": `exports.version = "${version}"; exports.at = __dirname;` },
    { version },
  );

describe("a package", () => {
  it("with native code stays a file, with the platform it is for", async () => {
    const { built, result } = await callBuilt(`${SERVICES}native.ts`, "hashes", {
      json: '{"text":"secret"}',
    });
    expect(resultValue(result)).toBe(true);
    expect(
      built.index.files.some(({ path }) => /^node_modules\/@node-rs\/.*\.node$/.test(path)),
    ).toBe(true);
    expect(built.index.platform).toMatch(new RegExp(`^${process.platform}-${process.arch}`));
  });

  it("that chooses its native part by a name it puts together gets the installed one", async () => {
    const part = `@parts/chooser-${process.platform}-${process.arch}`;
    const { paths, value, built } = await answerOf({
      ...installed(
        "node_modules/chooser",
        {
          "index.js":
            "const platform = [process.platform, process.arch];\n" +
            'module.exports = require(["@parts/chooser", ...platform].join("-"));',
        },
        { optionalDependencies: { [part]: "1", "@parts/chooser-elsewhere": "1" } },
      ),
      ...installed(
        `node_modules/${part}`,
        { "index.js": 'exports.name = "native";', "lib/code.node": "" },
        { os: [process.platform], optionalDependencies: { "@parts/deeper": "1" } },
      ),
      ...installed("node_modules/@parts/deeper", { "lib.so.42": "" }, { cpu: [process.arch] }),
      "service.ts": serviceSource("chooser.name", 'import chooser from "chooser";'),
    });
    expect(value).toBe("native");
    expect(built.index.platform).toBeDefined();
    expect(paths).toEqual([
      `node_modules/${part}/index.js`,
      `node_modules/${part}/lib/code.node`,
      `node_modules/${part}/package.json`,
      "node_modules/@parts/deeper/lib.so.42",
      "node_modules/@parts/deeper/package.json",
      "node_modules/chooser/index.js",
      "node_modules/chooser/package.json",
    ]);
  });

  it("that imports what is not installed, and may never need it, stays a file", async () => {
    const { paths, value } = await answerOf({
      ...installed("node_modules/mocking", {
        "index.js": 'exports.real = () => 1;\nexports.mock = () => require("nock");',
      }),
      "service.ts": serviceSource("real()", 'import { real } from "mocking";'),
    });
    expect(value).toBe(1);
    expect(paths).toContain("node_modules/mocking/index.js");
  });

  it("that reads a file of its own stays a file, and what it needs is there once", async () => {
    const { paths, value } = await answerOf({
      ...installed("node_modules/reader", {
        "index.js": READER,
        "data/words.txt": "words",
        "data/unread.txt": "unread",
        "README.md": "unread",
      }),
      ...installed("node_modules/counter", { "index.js": COUNTER }),
      "service.ts": serviceSource(
        "[read(), counter.next()]",
        'import read from "reader";\nimport counter from "counter";',
      ),
    });
    expect(value).toEqual([["words", 1], 2]);
    expect(paths).toEqual([
      "node_modules/counter/index.js",
      "node_modules/counter/package.json",
      "node_modules/reader/data/words.txt",
      "node_modules/reader/index.js",
      "node_modules/reader/package.json",
    ]);
  });

  it("of plain CommonJS that uses Node's modules goes into the bundle", async () => {
    const { paths, value, built } = await answerOf({
      ...installed("node_modules/hashing", {
        "index.js":
          'const { createHash } = require("crypto");\nlet tuned; try { tuned = require("missing-speedup"); } catch {}\n' +
          'module.exports = (text) => createHash("md5").update(text).digest("hex");\n',
      }),
      "service.ts": serviceSource("hash('a')", 'import hash from "hashing";'),
    });
    expect(paths).toEqual([]);
    expect(value).toBe("0cc175b9c0f1b6a831c399e269772661");
    expect(String(built.files.get("service.js"))).toContain("node_modules/hashing/index.js");
  });

  it("whose default export bundlers see differently is what it is to Node", async () => {
    const { value } = await answerOf({
      ...installed("node_modules/compiled", {
        "index.js":
          'Object.defineProperty(exports, "__esModule", { value: true });\nexports.default = () => 1;\n',
      }),
      "service.ts": serviceSource(
        "[typeof compiled, Object.keys(compiled)]",
        'import compiled from "compiled";',
      ),
    });
    expect(value).toEqual(["object", ["default"]]);
  });

  it("that is there in two versions keeps both, each for who needs it", async () => {
    const { paths, value } = await answerOf({
      ...versioned("node_modules/part", "1.0.0"),
      ...installed("node_modules/whole", {
        "index.js": 'exports.all = [__dirname, require("part").version];',
      }),
      ...versioned("node_modules/whole/node_modules/part", "2.0.0"),
      "service.ts": serviceSource(
        "[part.version, whole.all[1]]",
        'import part from "part";\nimport whole from "whole";',
      ),
    });
    expect(value).toEqual(["1.0.0", "2.0.0"]);
    expect(paths).toContain("node_modules/part/index.js");
    expect(paths).toContain("node_modules/whole/node_modules/part/index.js");
  });

  it("linked from a store, as pnpm does, lies where it can be found", async () => {
    const store = "node_modules/.pnpm";
    const { paths, value } = await answerOf({
      ...installed(
        `${store}/whole@1/node_modules/whole`,
        {
          "index.js":
            'import { version } from "part"; export const all = [import.meta.dirname, version];',
        },
        { type: "module" },
      ),
      [`${store}/whole@1/node_modules/part`]: "-> ../../part@2/node_modules/part",
      ...versioned(`${store}/part@2/node_modules/part`, "2.0.0"),
      ...versioned(`${store}/part@1/node_modules/part`, "1.0.0"),
      "node_modules/whole": "-> .pnpm/whole@1/node_modules/whole",
      "node_modules/part": "-> .pnpm/part@1/node_modules/part",
      "service.ts": serviceSource(
        "[part.version, all[1]]",
        'import part from "part";\nimport { all } from "whole";',
      ),
    });
    expect(value).toEqual(["1.0.0", "2.0.0"]);
    expect(paths).toEqual([
      "node_modules/part/index.js",
      "node_modules/part/package.json",
      "node_modules/whole/index.js",
      "node_modules/whole/node_modules/part/index.js",
      "node_modules/whole/node_modules/part/package.json",
      "node_modules/whole/package.json",
    ]);
  });

  it("loaded with createRequire is found, by the service's own rules of resolution", async () => {
    const { paths, value } = await answerOf({
      ...versioned("node_modules/part", "1.0.0"),
      "service.ts": serviceSource(
        "part.version",
        'import { createRequire } from "node:module";\nconst require = createRequire(import.meta.url);\n' +
          'const part = require("part");',
      ),
    });
    expect(value).toBe("1.0.0");
    expect(paths).toEqual(["node_modules/part/index.js", "node_modules/part/package.json"]);
  });

  it("that is a folder of the same workspace counts as the service's own", async () => {
    await using project = await Project.create({
      "package.json": "{}",
      "services/service.ts": serviceSource("words", 'import { words } from "shared";'),
      "services/package.json": "{}",
      "services/node_modules/shared": "-> ../../shared",
      "shared/package.json": '{"name":"shared","exports":"./main.ts","type":"module"}',
      "shared/main.ts":
        'import { readFileSync } from "node:fs";\nexport const words: string = readFileSync(new URL("words.txt", import.meta.url), "utf8");',
      "shared/words.txt": "shared words",
    });
    const { built, result } = await callBuilt(project.path("services/service.ts"), "go");
    expect(resultValue(result)).toBe("shared words");
    expect(built.files.has("shared/words.txt")).toBe(true);
  });

  it("that is not installed is named, with the import", async () => {
    await expect(
      answerOf({ "service.ts": serviceSource("gone", 'import gone from "gone";') }),
    ).rejects.toThrow('service.ts:1:18: Could not resolve "gone"; install it where the service is');
  });
});
