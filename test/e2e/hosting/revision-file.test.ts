/** Files of a revision as text, for people to look at. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { artifact, World } from "./world.ts";

let world: World;
const OWN = {
  "z-binary": Buffer.from([0, 1, 2]),
  "z-latin": Buffer.from([0xe9, 0x0a]),
  "z-large": Buffer.alloc(600 * 1024, "x"),
  "z-empty": Buffer.alloc(0),
};

beforeAll(async () => {
  world = await World.start();
  const built = await artifact();
  const files = Object.entries(OWN).map(([path, content]) => {
    const sha256 = createHash("sha256").update(content).digest("hex");
    return { path, size: content.length, sha256, executable: false };
  });
  const index = { ...built.index, files: [...built.index.files, ...files].sort(byPath) };
  const all = new Map([...built.files, ...Object.entries(OWN)]);
  await world.deployed("echo", { ...built, index, files: all });
});
afterAll(() => world[Symbol.asyncDispose]());

const byPath = (one: { readonly path: string }, other: { readonly path: string }) =>
  one.path < other.path ? -1 : 1;

const read = async (path: string, revision = 1) =>
  (
    await world.platform.call(
      `/api/v1/deployments/echo/revisions/${revision}:file?path=${encodeURIComponent(path)}`,
      undefined,
      world.cookie,
    )
  ).json;

it("are read by their path, with the names of the sources in what was compiled", async () => {
  const file = await read("service.js");
  expect(file.text).toContain("// echo.ts\n");
  expect(file.text).toContain('VERSION = "one"');
  expect(Number(file.size_bytes)).toBe(Buffer.byteLength(String(file.text)));
  expect(await read("z-empty")).toMatchObject({ path: "z-empty", text: "" });
});

it.each([["z-binary"], ["z-latin"], ["z-large"]])(
  "have no text where people cannot read it: %s",
  async (path) => {
    const file = await read(path);
    expect(file).toMatchObject({ path });
    expect(file.text).toBeUndefined();
  },
);

it.each([
  ["nowhere.js", 1],
  ["../../etc/passwd", 1],
  ["service.js", 7],
])("are not found where there are none: %s of revision %i", async (path, revision) => {
  expect(JSON.stringify(await read(path, revision))).toContain("REVISION_NOT_FOUND");
});
