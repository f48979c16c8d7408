import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { expect, it } from "vitest";

const COMMENT = /^\s*(?:\/\/|\/?\*).*/gm;
const FILE = /(?<![\w./@-])(?:[\w-]+\/)*([\w.-]+\.tsx?)(?!\w)/g;

/** Names that stand for a file of somebody else, not of this repository. */
const EXAMPLES = new Set(["service.ts"]);

it("comments in src name only files that exist", () => {
  const files = globSync("{src,test,scripts,bench}/**/*.{ts,tsx}");
  const names = new Set([...files.map((file) => basename(file)), ...EXAMPLES]);
  const absent = files
    .filter((file) => file.startsWith("src/"))
    .flatMap((file) =>
      [...readFileSync(file, "utf8").matchAll(COMMENT)]
        .flatMap(([comment]) => [...comment.matchAll(FILE)])
        .filter(([, name = ""]) => !names.has(name))
        .map(([named]) => `${file}: ${named}`),
    );
  expect(absent).toEqual([]);
});
