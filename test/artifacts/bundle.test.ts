import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { bundleService, ServiceFileError } from "../../src/artifacts/bundle.ts";

const SERVICES = fileURLToPath(new URL("../fixtures/services", import.meta.url));

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "bundle-test-"));
});

afterEach(() => rm(folder, { recursive: true }));

async function write(name: string, source: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, source);
  return path;
}

describe("a bundle", () => {
  it("has the local modules in it, the packages outside, and decorators lowered", async () => {
    const bundle = await bundleService(join(SERVICES, "decorated.ts"));
    expect(bundle.servicePath).toBe(join(SERVICES, "decorated.ts"));
    expect(bundle.watchFiles).toEqual(
      expect.arrayContaining([join(SERVICES, "decorated.ts"), join(SERVICES, "local/where.ts")]),
    );
    expect(bundle.code).toMatch(/from "tessera-platform"/);
    expect(bundle.code).toMatch(/from "zod"/);
    expect(bundle.code).not.toMatch(/^\s*@/m);
    expect(bundle.code).toContain("sourceMappingURL=data:");
  });

  it("keeps the kinds of local files apart and hashbangs harmless", async () => {
    await write("data.json", '{"answer": 42}');
    const path = await write(
      "service.mts",
      '#!/usr/bin/env node\nimport data from "./data.json" with { type: "json" };\n' +
        "export default [data.answer, import.meta.filename];\n",
    );
    const { code } = await bundleService(path);
    expect(code).toContain("42");
    expect(code).toContain(JSON.stringify(path));
  });

  it("leaves tessera alone where another package of that name is installed", async () => {
    await mkdir(join(folder, "node_modules/tessera"), { recursive: true });
    await write("node_modules/tessera/package.json", '{"name":"tessera","main":"index.js"}');
    await write("node_modules/tessera/index.js", "module.exports = 'tiles';\n");
    const path = await write("tiles.js", 'import tiles from "tessera";\nexport default tiles;\n');
    const { code } = await bundleService(path);
    expect(code).toMatch(/from "tessera"/);
  });

  it("warns of duplicate keys that are not endpoints", async () => {
    const { warnings } = await bundleService(join(SERVICES, "refused/two-keys-elsewhere.js"));
    expect(warnings).toEqual([
      expect.stringMatching(/^two-keys-elsewhere\.js:7:\d+: Duplicate key "same"/),
    ]);
  });
});

describe("a service file is refused", () => {
  it("when it does not exist", async () => {
    await expect(bundleService(join(folder, "x.ts"))).rejects.toThrow(
      new ServiceFileError(`service file ${join(folder, "x.ts")} does not exist`),
    );
  });

  it("when it is a folder", async () => {
    await expect(bundleService(folder)).rejects.toThrow("is a folder; name the file");
  });

  it("when it is something else than code", async () => {
    const path = await write("notes.txt", "hello");
    await expect(bundleService(path)).rejects.toThrow("is not TypeScript or JavaScript");
  });

  it("when it does not compile, with each place", async () => {
    const path = await write("broken.ts", "export default 1;\nconst broken = ;\n");
    await expect(bundleService(path)).rejects.toThrow(
      new ServiceFileError('broken.ts:2:16: Unexpected ";"'),
    );
  });

  it("when it imports a local module that is not there", async () => {
    const path = await write("lonely.ts", 'import { x } from "./gone.ts";\nexport default x;\n');
    await expect(bundleService(path)).rejects.toThrow(
      'lonely.ts:1:19: Could not resolve "./gone.ts"',
    );
  });

  it("when it imports the SDK by its former name, with the name to write instead", async () => {
    const path = await write(
      "former.ts",
      'import { service } from "tessera";\nexport { createClient } from "tessera/client";\nexport default service;\n',
    );
    await expect(bundleService(path)).rejects.toThrow(
      new ServiceFileError(
        'former.ts:1:25: Could not resolve "tessera": import from "tessera-platform" instead\n' +
          'former.ts:2:30: Could not resolve "tessera/client": import from "tessera-platform/client" instead',
      ),
    );
  });

  it("with a few errors of many", async () => {
    const imports = Array.from({ length: 8 }, (_, index) => `import "./gone-${index}.ts";`);
    const path = await write("many.ts", imports.join("\n"));
    await expect(bundleService(path)).rejects.toThrow(/^(?:many\.ts.*\n){5}and 3 more$/);
  });

  it("when its endpoints object has one key twice", async () => {
    await expect(bundleService(join(SERVICES, "refused/two-keys.js"))).rejects.toThrow(
      new ServiceFileError("two-keys.js:11:5: two endpoints named go"),
    );
  });

  it("when a key is twice in an endpoints object of its own, quoted, among regular expressions", async () => {
    const path = await write(
      "apart.ts",
      "const brace = /[{]\\//;\nconst endpoints: Record<string, number> = {\n" +
        '  "go-on": "}".length,\n  "go-on": `}`.length, // }\n};\nexport default { endpoints, brace };\n',
    );
    await expect(bundleService(path)).rejects.toThrow("apart.ts:4:3: two endpoints named go-on");
  });
});
