import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { findBentoModel, parseBentoSource } from "../../src/artifacts/bento-models.ts";

let home: string;
beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "tessera-bento-"));
  const versions = ["reader/v1", "reader/v10", "reader/abcdef", "only/1.0", "stale/a", "stale/b"];
  for (const each of [...versions, "odd/Not A Tag"]) {
    mkdirSync(join(home, "models", each), { recursive: true });
  }
  writeFileSync(join(home, "models/reader/latest"), "v10\n");
  writeFileSync(join(home, "models/stale/latest"), "gone");
});
afterAll(() => rmSync(home, { recursive: true }));

const found = async (source: string) => {
  const named = parseBentoSource(source);
  if (named === undefined) {
    return "no source";
  }
  return await findBentoModel(named, { BENTOML_HOME: home }).then(
    ({ name, version, folder }) => [`${name}:${version}`, folder.slice(home.length)],
    (err: Error) => err.message.replaceAll(home, ""),
  );
};

it.each([
  ["bentoml://reader", "reader:v10", "/models/reader/v10"],
  ["bentoml://reader:latest", "reader:v10", "/models/reader/v10"],
  ["bentoml://reader:v1", "reader:v1", "/models/reader/v1"],
  ["bentoml://reader:abc", "reader:abcdef", "/models/reader/abcdef"],
  ["bentoml://only", "only:1.0", "/models/only/1.0"],
])("finds %s as BentoML does", async (source, tag, folder) => {
  expect(await found(source)).toEqual([tag, folder]);
});

it.each([
  ["bentoml://none:v1", "BentoML has no model none here: /models does not have it"],
  ["bentoml://odd", "BentoML has no model odd here: /models does not have it"],
  [
    "bentoml://reader:v2",
    "BentoML has no version v2 of the model reader here: /models/reader does not have it",
  ],
  [
    "bentoml://only:v",
    "BentoML has no version v of the model only here: /models/only does not have it",
  ],
  ["bentoml://stale", "/models/stale/latest does not say which version of stale is the latest"],
  ["bentoml://reader:v", "several versions of the model reader begin with v: v1, v10"],
  ["bentoml://../models:v1", "no source"],
  ["bentoml://reader:../only", "no source"],
  ["bentoml://reader:", "no source"],
])("refuses %s, and says why", async (source, message) => {
  expect(await found(source)).toBe(message);
});

it("looks into the home of BentoML, or of its user", async () => {
  const named = { name: "only", version: "latest" };
  const moved = join(home, "of-user/bentoml");
  mkdirSync(join(moved, "models/only/2.0"), { recursive: true });
  const { version } = await findBentoModel(named, { HOME: join(home, "of-user") });
  expect(version).toBe("2.0");
});
