import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { file, fileFromPath, fileFromStream, filePath } from "../../src/sdk/index.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tessera-place-"));
  vi.stubEnv("TMPDIR", folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true, force: true });
});

async function* bytes(...chunks: readonly string[]) {
  for (const chunk of chunks) {
    yield Buffer.from(chunk);
  }
}

/** The file as the schema of an endpoint hands it on. */
async function checked(value: File, contentType?: string): Promise<File> {
  const schema = file(contentType === undefined ? {} : { contentType });
  const result = await schema["~standard"].validate(value);
  if (result.issues) {
    throw new Error(result.issues[0]?.message);
  }
  return result.value;
}

it("a file from a path is read when it is asked for, and stays where it lies", async () => {
  const path = join(folder, "table.csv");
  writeFileSync(path, "a,b");
  const made = await fileFromPath(path, { contentType: "text/csv" });
  expect([made.name, made.type, made.size]).toEqual(["table.csv", "text/csv", 3]);
  expect(await made.text()).toBe("a,b");
  expect(await filePath(made)).toBe(path);
  expect(await filePath(await checked(await fileFromPath(path), "text/csv"))).toBe(path);
  expect((await fileFromPath(path, { name: "other.csv" })).name).toBe("other.csv");
  await expect(fileFromPath(join(folder, "missing"))).rejects.toThrow();
});

it("a file from a stream is written as it comes", async () => {
  const made = await fileFromStream(bytes("one ", "two"), { name: "n", contentType: "a/b" });
  expect([made.name, made.type, await made.text()]).toEqual(["n", "a/b", "one two"]);
  expect(readFileSync(await filePath(made), "utf8")).toBe("one two");
  const web = new Blob(["three"]).stream();
  expect(await (await fileFromStream(web)).text()).toBe("three");
});

it("a stream that fails leaves nothing behind", async () => {
  async function* failing() {
    yield* bytes("one");
    throw new RangeError("no more");
  }
  await expect(fileFromStream(failing())).rejects.toThrow(new RangeError("no more"));
  expect(readdirSync(folder)).toEqual([]);
});

it("a file in memory is written when its path is asked for, once", async () => {
  const given = new File(["small"], "s.txt", { type: "text/plain" });
  const path = await filePath(given);
  expect(readFileSync(path, "utf8")).toBe("small");
  expect(await filePath(given)).toBe(path);
  expect(await filePath(await checked(given))).toBe(path);
});
