import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  createIndex,
  createRemoteIndex,
  digestOf,
  unpackedFiles,
  verifyIndex,
  withModels,
  writeIndex,
} from "../../src/artifacts/index-file.ts";
import { fileOf, indexText, SERVICE } from "./hostile.ts";

const withFiles = (...paths: string[]) => indexText(paths.map((path) => ({ path })));

describe("an index", () => {
  it("has one text, whatever the order in which its files were found", () => {
    const files = ["service.js", "b", "a/c", "B2", "é"].map((path) => fileOf(path));
    const text = writeIndex(createIndex(SERVICE, files));
    const reversed = writeIndex(createIndex(SERVICE, files.toReversed()));
    expect(reversed).toBe(text);
    expect(text).not.toMatch(/\s/);
    expect(writeIndex(verifyIndex(text))).toBe(text);
    expect(digestOf(text)).toMatch(/^[0-9a-f]{64}$/);
  });

  it("keeps the order in which a service describes its arguments", () => {
    const input = { type: "object", properties: { zebra: {}, apple: {} } };
    const endpoint = {
      name: "go",
      kind: "api" as const,
      input,
      files: {},
      output: {},
      timeoutMs: 1,
      concurrency: 1,
      retentionMs: 1,
      queueLimit: 1,
      priority: 0,
      retries: { max: 0, backoffMs: 1 },
    };
    const index = createIndex(
      { name: "tried", endpoints: [endpoint] },
      [fileOf("service.js")],
      undefined,
    );
    const [read] = verifyIndex(writeIndex(index)).service.endpoints;
    expect(Object.keys(read?.input.properties ?? {})).toEqual(["zebra", "apple"]);
  });

  describe("with models", () => {
    const index = createIndex(SERVICE, [fileOf("service.js")]);
    const model = { name: "a", model: "a", version: 1, digest: "0".repeat(64), size: 1 };

    it.each([
      { tag: "reader:v3", revision: "latest" },
      { repository: "acme/reader", commit: "1".repeat(40), revision: "refs/pr/7" },
    ])("keeps what libraries call them: $revision", (named) => {
      const text = writeIndex(withModels(index, [{ ...model, ...named }]));
      expect(verifyIndex(text).models).toEqual([expect.objectContaining(named)]);
    });

    it.each([
      { tag: "reader:../../x" },
      { tag: "reader:latest" },
      { tag: "../reader:v3" },
      { tag: "reader" },
      { tag: "Reader:v3" },
      { revision: "../../x" },
      { revision: "a//b" },
      { revision: "/a" },
      { revision: "a/.." },
      { revision: "" },
    ])("refuses names that are no parts of paths: %o", (named) => {
      const [key = ""] = Object.keys(named);
      expect(() => withModels(index, [{ ...model, ...named }])).toThrow(
        `/models/0/${key} must match`,
      );
    });
  });

  it.each([
    ["/etc/passwd", "is absolute"],
    ["../outside", "leads out of the artifact"],
    ["a/../../outside", "leads out of the artifact"],
    ["a\\b", "has a backslash"],
    ["C:/windows", "a colon"],
    ["a\u0000b", "a control character"],
    ["a//b", "an empty or a superfluous part"],
    ["./a", "an empty or a superfluous part"],
    ["", "an empty or a superfluous part"],
    ["\ud800", "is not valid Unicode"],
    ["x".repeat(256), "more than 255 bytes"],
    [`${"long/".repeat(300)}a`, "longer than 1024 bytes"],
  ])("is refused with the path %j", (path, fault) => {
    expect(() => verifyIndex(withFiles(path))).toThrow(fault);
  });

  it.each([
    [["a", "a"], '"a" is there twice'],
    [["README", "readme"], 'paths "README" and "readme" differ only in case'],
    [["caf\u00e9", "cafe\u0301"], "differ only in case"],
    [["Data/a", "data/b"], 'paths "Data" and "data" differ only in case'],
    [["a", "a/b"], '"a" is a file, and "a/b" lies in it'],
    [["tessera.json"], '"tessera.json" is there twice'],
  ])("is refused with the paths %j", (paths, fault) => {
    expect(() => verifyIndex(withFiles(...paths))).toThrow(fault);
  });

  it.each([
    [
      "another format",
      { format: 4 },
      "the artifact has format 4, and this version of tessera reads formats 1, 2, 3",
    ],
    ["another major version", { tessera: "7" }, 'was built for version "7" of tessera'],
    ["something unknown", { extra: 1 }, "must NOT have additional properties"],
    ["another entry", { entry: "other.js" }, "/entry must be equal to constant"],
    ["no service", { service: {} }, "does not describe the service"],
    ["the name of another service", { name: "other" }, 'does not describe the service "other"'],
    ["files beside a manifest only", { format: 3, kind: "remote", entry: "" }, "more than 0 items"],
    ["no files", { files: [] }, "/files must NOT have fewer than 1 items"],
    ["a strange file", { files: [{ path: "a" }] }, "/files/0 must have required property 'size'"],
  ])("is refused with %s", (_what, change, fault) => {
    expect(() => verifyIndex(indexText([], (index) => ({ ...index, ...change })))).toThrow(fault);
  });

  describe("of a service in Python", () => {
    const files = ["service.py", "tessera.lock", "wheels/six-1.17.0-py3-none-any.whl"].map((path) =>
      fileOf(path),
    );
    const python = { version: "3.11", object: "Reader" };

    it("has what it is run with, and nodes unpack all but the packages", () => {
      const text = writeIndex(createIndex(SERVICE, files, { entry: "service.py", python }));
      const index = verifyIndex(text);
      expect(index).toMatchObject({ format: 2, entry: "service.py", python });
      expect(unpackedFiles(index).map(({ path }) => path)).toEqual(["service.py", "tessera.lock"]);
      expect(writeIndex(index)).toBe(text);
    });

    it.each([
      ["a version of Python that is none", { python: { version: "3.11; rm" } }, "/python/version"],
      ["a name that is none", { python: { ...python, object: "a b" } }, "/python/object"],
      ["something unknown", { python: { ...python, flags: [] } }, "/python must NOT have"],
      ["a module elsewhere", { python: { ...python, module: "os.path" } }, "is not the name of"],
      ["an entry that is not there", { entry: "other.py" }, 'lacks "other.py"'],
      ["an entry in another language", { entry: "service.js" }, "/entry must match"],
    ])("is refused with %s", (_what, change, fault) => {
      const index = createIndex(SERVICE, files, { entry: "service.py", python });
      expect(() => verifyIndex(writeIndex({ ...index, ...change }))).toThrow(fault);
    });

    it("is refused without the list of its packages", () => {
      const make = () => createIndex(SERVICE, files.slice(0, 1), { entry: "service.py", python });
      expect(make).toThrow('lacks "tessera.lock", the list of its packages');
    });
  });

  it("is refused without the service's code", () => {
    const text = indexText([], (index) => ({ ...index, files: [fileOf("a")] }));
    expect(() => verifyIndex(text)).toThrow('lacks "service.js"');
  });

  it.each([
    [
      "files",
      Array.from({ length: 20_001 }, (_, at) => fileOf(`f${at}`)),
      "has 20002 files; at most 20000",
    ],
    [
      "a file",
      [{ ...fileOf("big"), size: 2 ** 28 + 1 }],
      '"big" has 268435457 bytes; a file may have',
    ],
    [
      "in total",
      Array.from({ length: 4_097 }, (_, at) => ({ ...fileOf(`${at}`), size: 2 ** 28 })),
      "all its files together",
    ],
  ])("is refused when it is too large: %s", (_what, files, fault) => {
    const text = indexText([], (index) => ({ ...index, files: [...files, fileOf("service.js")] }));
    expect(() => verifyIndex(text)).toThrow(fault);
  });

  it.each([
    ["spaces", (text: string) => `${text} `],
    [
      "another order",
      (text: string) =>
        JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(text)).toReversed())),
    ],
    ["a member twice", (text: string) => text.replace('"format":1', '"format":1,"format":1')],
    ["a byte order mark in its name", (text: string) => text.replace('"tried"', '"tried\\u0000"')],
  ])("is refused in another form: %s", (_what, change) => {
    expect(() => verifyIndex(change(indexText([])))).toThrow(/one form|does not describe/);
  });

  it.each([
    "",
    "null",
    "[]",
    "1",
    "{",
    `${"[".repeat(100_000)}`,
    `{"service":${"[".repeat(1e5)}${"]".repeat(1e5)}}`,
  ])("is refused when it is something else: %.20j", (text) => {
    expect(() => verifyIndex(text)).toThrow(/tessera\.json/);
  });

  it("never fails in another way, whatever it is", () => {
    const good = JSON.parse(indexText([{ path: "a" }])) as Record<string, unknown>;
    fc.assert(
      fc.property(fc.constantFrom(...Object.keys(good)), fc.jsonValue(), (key, value) => {
        try {
          verifyIndex(JSON.stringify({ ...good, [key]: value }));
        } catch (err) {
          expect((err as Error).name).toBe("ArtifactError");
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("an index of kind remote", () => {
  const endpoint = {
    ...{ name: "count", kind: "task", input: {}, files: {}, output: {}, timeoutMs: 1 },
    ...{ concurrency: 1, retentionMs: 1, retries: {}, queueLimit: 1, priority: 0 },
  };

  it("has the manifest and no files", () => {
    const index = createRemoteIndex({ name: "primes", endpoints: [endpoint] });
    expect(index).toMatchObject({ kind: "remote", name: "primes", entry: "", files: [] });
    expect(verifyIndex(writeIndex(index))).toEqual(index);
  });

  it.each([
    [null, "must have a name and a list of endpoints"],
    [{ name: "a" }, "must have a name and a list of endpoints"],
    [{ name: "a", endpoints: [endpoint, { name: "b" }] }, 'endpoint 2 of the manifest ("b")'],
    [{ name: "a", endpoints: [], metrics: 1 }, "the manifest is not valid"],
  ])("is not made of %j", (manifest, fault) => {
    expect(() => createRemoteIndex(manifest)).toThrow(fault);
  });
});
