import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { modelEnvironment, type WorkerModel } from "../../../src/pool/launch/models.ts";

const [ONE, TWO] = ["1".repeat(40), "2".repeat(40)];
const READER = { repository: "acme/reader" };

let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "tessera-scratch-"));
});
afterEach(() => rmSync(scratch, { recursive: true }));

/** Makes the view of models, whose folders are called as they are. */
function view(models: readonly Omit<WorkerModel, "path">[]) {
  return modelEnvironment(
    models.map((model) => {
      const path = join(scratch, "store", model.name);
      mkdirSync(path, { recursive: true });
      return { ...model, path };
    }),
    scratch,
  );
}

/** The revisions of a repository in the view, with what they lead to. */
function revisions(repository: string) {
  const folder = join(scratch, "hub", `models--${repository.replace("/", "--")}`);
  const refs = readdirSync(join(folder, "refs"), { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    refs
      .filter((each) => each.isFile())
      .map(({ parentPath, name }) => {
        const path = join(parentPath, name);
        const commit = readFileSync(path, "utf8");
        const snapshot = readlinkSync(join(folder, "snapshots", commit));
        return [path.slice(join(folder, "refs").length + 1), snapshot.split("/").at(-1)];
      }),
  );
}

it("has a repository's revision by its name, and as the branch main where no other is", () => {
  const env = view([{ ...READER, name: "a", commit: ONE, revision: "refs/pr/7" }]);
  expect(env).toMatchObject({ HF_HUB_CACHE: join(scratch, "hub"), HF_HUB_OFFLINE: "1" });
  expect(env).not.toHaveProperty("BENTOML_HOME");
  expect(revisions("acme/reader")).toEqual({ "refs/pr/7": "a", main: "a" });
});

it("has two revisions of one repository, and main is the one that the code names so", () => {
  view([
    { ...READER, name: "a", commit: ONE, revision: "v1.0" },
    { ...READER, name: "b", commit: TWO },
    { repository: "acme/other", name: "c", commit: TWO, revision: "main" },
  ]);
  expect(revisions("acme/reader")).toEqual({ "v1.0": "a", main: "b" });
  expect(revisions("acme/other")).toEqual({ main: "c" });
});

it("leaves out what two would be", () => {
  view([
    { ...READER, name: "a", commit: ONE, revision: "v1" },
    { ...READER, name: "b", commit: TWO, revision: "v2" },
    { ...READER, name: "c", commit: ONE, revision: "x" },
    { ...READER, name: "d", commit: TWO, revision: "x" },
    { ...READER, name: "e", commit: TWO, revision: "x/below" },
  ]);
  // Both commits are there by themselves.
  expect(revisions("acme/reader")).toEqual({ v1: "a", v2: "b", "x/below": "b" });
});

it("has versions of BentoML's store by their tags, and the newest as the code names it", () => {
  const env = view([
    { name: "a", tag: "reader:v1" },
    { name: "b", tag: "reader:v2", revision: "latest" },
    { name: "c", tag: "other:1.0" },
    { name: "d", tag: "both:1" },
    { name: "e", tag: "both:2" },
  ]);
  expect(env).toMatchObject({ BENTOML_HOME: join(scratch, "bentoml") });
  expect(env).not.toHaveProperty("HF_HUB_OFFLINE");
  const store = join(scratch, "bentoml/models");
  expect(readlinkSync(join(store, "reader/v1"))).toBe(join(scratch, "store/a"));
  expect(readFileSync(join(store, "reader/latest"), "utf8")).toBe("v2");
  expect(readFileSync(join(store, "other/latest"), "utf8")).toBe("1.0");
  expect(readdirSync(join(store, "both")).sort()).toEqual(["1", "2"]);
});
