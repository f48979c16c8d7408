/** Each block of commands in the documents runs in a test, or is in a list that says why not. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { means, NOT_IN_IMAGE, PYTHON, SMALL } from "../../packaging/image/documented.ts";
import { documentedBlocks } from "../e2e/docs/blocks.ts";
import { HERE, NOT_RUN, NOT_RUN_PAGES, TESTED_BY } from "../e2e/docs/commands.ts";

const ROOT = join(import.meta.dirname, "../..");

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const BLOCKS = documentedBlocks();

const tests = globSync("test/e2e/**/*.ts", { cwd: ROOT }).filter(
  (path) => !path.includes("docs/commands"),
);

describe("the commands of the documents", () => {
  it.each(BLOCKS)("are run, or it is said why not: $page, $text", ({ page, text }) => {
    const lists = [HERE, NOT_RUN].map((list) =>
      list.filter(([one, start]) => one === page && text.startsWith(start)),
    );
    const ownTest =
      TESTED_BY[page] ?? NOT_RUN_PAGES[page] ?? tests.find((path) => read(path).includes(page));
    const count = lists.flat().length;
    expect(count === 1 || (count === 0 && ownTest !== undefined), `${page}: ${text}`).toBe(true);
  });

  it.each(BLOCKS)("run with the image, or it is said why not: $page, $text", (block) => {
    const runs = [...SMALL, ...PYTHON].filter((entry) => means(entry, block));
    const reasons = NOT_IN_IMAGE.filter((entry) => means(entry, block));
    expect({ runs: runs.length, reasons: reasons.length }).toEqual(
      runs.length > 0 ? { runs: 1, reasons: 0 } : { runs: 0, reasons: 1 },
    );
  });

  it("are still there where a list of the image's says so", () => {
    for (const entry of [...SMALL, ...PYTHON, ...NOT_IN_IMAGE]) {
      expect(
        BLOCKS.some((block) => means(entry, block)),
        entry.join(": "),
      ).toBe(true);
    }
  });

  const listed = [...HERE, ...NOT_RUN].map(([page, start]) => [page, start] as const);

  it.each(listed)("are still in %s: %s", (page, start) => {
    expect(BLOCKS.some((block) => means([page, start], block))).toBe(true);
  });

  it.each(Object.entries(TESTED_BY))("of %s are in %s", (page, test) => {
    expect(existsSync(join(ROOT, page)) && existsSync(join(ROOT, test))).toBe(true);
    expect(read(test)).toContain(page.replace(/^.*\//, ""));
  });

  it.each(Object.entries(NOT_RUN_PAGES))("of %s are not run: %s", (page, reason) => {
    expect(existsSync(join(ROOT, page))).toBe(true);
    const [test = ""] = /test\/\S+\.ts/.exec(reason) ?? [];
    expect(existsSync(join(ROOT, test)), test).toBe(true);
  });
});
