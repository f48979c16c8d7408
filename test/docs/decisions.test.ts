import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const FOLDER = "docs/decisions";
const INDEX = `${FOLDER}/README.md`;

/** What a page has in code marks that begins like a path of this repository. */
const PATH = /`((?:src|test|bin|proto|gen|scripts|bench|clients|docs)\/[^`\s<>{}*]*)`/g;

const LINK = /\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)/g;

const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");

const pages = readdirSync(join(ROOT, FOLDER))
  .filter((name) => name !== "README.md")
  .sort();

const documents = [
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "docs/glossary.md",
  INDEX,
  ...pages.map((name) => `${FOLDER}/${name}`),
];

/** The first groups of all matches. */
const found = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, group = ""]) => group);

describe("pages of decisions", () => {
  it("are numbered without gaps", () => {
    const numbers = pages.map((name) => /^(\d{4})-[a-z0-9-]+\.md$/.exec(name)?.[1]);
    expect(numbers).toEqual(pages.map((_, index) => String(index + 1).padStart(4, "0")));
  });

  it("are in the index and in ARCHITECTURE.md, once each, in order under the same headings", () => {
    const links = (text: string, before: string) =>
      found(text, LINK)
        .filter((link) => link.startsWith(before) && /\/?\d{4}-/.test(link))
        .map((link) => link.slice(before.length));
    const groups = new Map(
      read(INDEX)
        .split(/^## /m)
        .slice(1)
        .map((group) => [group.split("\n", 1)[0], links(group, "")]),
    );
    for (const group of groups.values()) {
      expect(group).toEqual(group.toSorted());
    }
    expect(groups.size).toBeLessThanOrEqual(8);
    expect([...groups.values()].flat().sort()).toEqual(pages);
    expect(links(read("ARCHITECTURE.md"), `${FOLDER}/`).sort()).toEqual(pages);
    const lines = read("ARCHITECTURE.md").matchAll(/^- \*\*([^*]+):\*\* (\[\d.*)$/gm);
    expect([...lines].map(([, name, line = ""]) => [name, links(line, `${FOLDER}/`)])).toEqual([
      ...groups,
    ]);
  });

  it.each(pages)("%s has a title, the three sections and the files", (name) => {
    const text = read(`${FOLDER}/${name}`);
    expect(text).toMatch(new RegExp(`^# ${Number(name.slice(0, 4))}\\. [A-Z]`));
    expect(found(text, /^## (.*)$/gm)).toEqual(["Context", "Decision", "Consequences"]);
    expect(text).toMatch(/^Lives in: `/m);
  });

  it.each(pages)("%s has the title that the index has", (name) => {
    const title = /^# \d+\. (.*)$/m.exec(read(`${FOLDER}/${name}`))?.[1];
    expect(read(INDEX)).toContain(`](${name}) | **${title}.**`);
  });
});

describe("documents for contributors", () => {
  // What somebody is told to write is not there yet.
  const EXAMPLE = /-kebab-title\.md$/;

  it.each(documents)("%s links only to what exists", (path) => {
    const links = found(read(path), LINK);
    expect(links.filter((link) => !existsSync(join(ROOT, dirname(path), link)))).toEqual([]);
  });

  it.each(documents)("%s names only files and folders that exist", (path) => {
    const named = found(read(path), PATH).filter((one) => !EXAMPLE.test(one));
    expect(named.filter((one) => !existsSync(join(ROOT, one)))).toEqual([]);
  });
});
