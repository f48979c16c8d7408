/** Links of documents: each leads to a file and to a heading that exist. */
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";
import { describe, expect, it } from "vitest";
import { PAGES, sidebar, slugify } from "../../docs/.vitepress/pages.ts";

const ROOT = join(import.meta.dirname, "../..");

const DOCUMENTS = [
  ...globSync(
    ["*.md", "docs/**/*.md", "bench/*.md", "examples/*/*.md", "clients/*/*.md", "packaging/*/*.md"],
    {
      cwd: ROOT,
    },
  ),
].sort();

/** The text outside of code blocks, in which brackets mean other things. */
const prose = (path: string): string =>
  readFileSync(join(ROOT, path), "utf8").replace(/^( *)```[\s\S]*?^\1```/gm, "");

/** The text of a heading without its marks: the target of its links is made of it. */
const shown = (heading: string): string =>
  heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/[`*]/g, "");

/** The anchors of a document; a heading that is there again gets a number. */
function anchorsOf(path: string): Set<string> {
  const seen = new Map<string, number>();
  const headings = [...prose(path).matchAll(/^#{1,6} (.*)$/gm)].map(([, text = ""]) => text);
  return new Set(
    headings.map((heading) => {
      const anchor = slugify(shown(heading));
      const before = seen.get(anchor) ?? 0;
      seen.set(anchor, before + 1);
      return before === 0 ? anchor : `${anchor}-${before}`;
    }),
  );
}

/** What is wrong with the links of a document. */
function broken(path: string): string[] {
  const links = [
    ...prose(path)
      .replaceAll(/`[^`\n]*`/g, "")
      .matchAll(/\]\(([^)\s]+)\)/g),
  ];
  return links.flatMap(([, href = ""]) => {
    if (/^[a-z]+:/.test(href)) {
      return URL.canParse(href) && !href.startsWith("http:") ? [] : [`${href} is no https address`];
    }
    const [file = "", anchor] = href.split("#");
    const target = file === "" ? path : normalize(join(dirname(path), file));
    if (relative(ROOT, join(ROOT, target)).startsWith("..") || !existsSync(join(ROOT, target))) {
      return [`${href}: there is no ${target}`];
    }
    const isMissing = anchor !== undefined && !anchorsOf(target).has(anchor);
    return isMissing ? [`${href}: ${target} has no such heading`] : [];
  });
}

describe("links of documents", () => {
  it.each(DOCUMENTS)("%s leads only to files and headings that exist", (path) => {
    expect(broken(path)).toEqual([]);
  });

  it("would be found broken", () => {
    expect(DOCUMENTS.length).toBeGreaterThan(90);
    expect(anchorsOf("docs/deploy.md")).toContain("protect-it");
    expect(anchorsOf("docs/deploy.md")).not.toContain("unprotect-it");
  });
});

describe("the site of the documents", () => {
  it("has each page in its sidebar once, but for decisions, which their index lists", () => {
    const links = sidebar().flatMap(({ items }) => items.map(({ link }) => link));
    const pages = [...PAGES.values()].filter((page) => !/^decisions\/\d/.test(page));
    expect(new Set(links).size).toBe(links.length);
    expect(links.length).toBe(pages.length);
  });
});

describe("pages of the documentation", () => {
  it("have one title each, which no other page has", () => {
    const titles = [...PAGES.keys()].map((path) => [
      path,
      ...[...prose(path).matchAll(/^# (.*)$/gm)].map(([, title]) => title),
    ]);
    expect(titles.filter(({ length }) => length !== 2)).toEqual([]);
    const all = titles.map(([, title]) => title);
    expect(all.filter((title, index) => all.indexOf(title) !== index)).toEqual([]);
  });
});
