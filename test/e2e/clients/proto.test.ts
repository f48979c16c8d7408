/** `clients/proto`: the API for other languages is that of the server, without annotations. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { withoutAnnotations } from "../../../scripts/reference/annotations.ts";
import { ROOT, run } from "./python-environment.ts";

const BUF = join(ROOT, "node_modules/.bin/buf");

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

/** The descriptors of `tessera.v1` below a folder, by the name of their file. */
async function described(folder: string): Promise<Map<string, Json>> {
  const options = ["--exclude-source-info", "-o", "-#format=json"];
  const image = JSON.parse(await run(BUF, ["build", folder, ...options]));
  const files: (Json & { name: string })[] = image.file;
  return new Map(
    files
      .filter(({ name }) => name.startsWith("tessera/"))
      .map((file) => [file.name, withoutExtensions(file)]),
  );
}

/** Without options that are extensions (`[buf.validate.field]`), imports, and what buf adds. */
function withoutExtensions(value: Json): Json {
  if (Array.isArray(value)) {
    return value.map(withoutExtensions);
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key]) => !key.startsWith("[") && !["dependency", "bufExtension"].includes(key))
      .map(([key, each]) => [key, withoutExtensions(each)] as const)
      .filter(([key, each]) => key !== "options" || JSON.stringify(each) !== "{}"),
  );
}

it("says the same as the files of the server", async () => {
  const own = await described(join(ROOT, "proto"));
  own.delete("tessera/v1/access.proto");
  const exported = await described(join(ROOT, "clients/proto"));
  expect(exported.size).toBeGreaterThan(10);
  expect(exported).toEqual(own);
});

it("keeps every comment, and imports nothing that other languages lack", () => {
  const words = (text: string) => text.match(/^\s*\/\/.*$/gm)?.map((line) => line.trim()) ?? [];
  for (const name of readdirSync(join(ROOT, "clients/proto/tessera/v1"))) {
    const text = readFileSync(join(ROOT, "clients/proto/tessera/v1", name), "utf8");
    const own = readFileSync(join(ROOT, "proto/tessera/v1", name), "utf8");
    expect(words(text)).toEqual(words(own));
    expect(text).not.toMatch(/import "(?:buf|google\/api\/annotations|tessera\/v1\/access)/);
  }
});

it("takes annotations out of a field with other options, and reads no brackets in texts", () => {
  const source = [
    "message Old {",
    "  // A comment about [brackets].",
    '  string name = 1 [(buf.validate.field).string.pattern = "[a-z];]", deprecated = true];',
    "  string id = 2 [(buf.validate.field).string = {",
    "    min_len: 1",
    "  }];",
    "}",
    "",
  ];
  expect(withoutAnnotations(source.join("\n"))).toBe(
    [
      "message Old {",
      "  // A comment about [brackets].",
      "  string name = 1 [deprecated = true];",
      "  string id = 2;",
      "}",
      "",
    ].join("\n"),
  );
});
