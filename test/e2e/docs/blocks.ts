/** The blocks of code in the documents: the commands of all pages, and what a page has in a language. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../../..");

export interface DocumentedBlock {
  /** The page, below the root of the repository. */
  readonly page: string;
  readonly text: string;
}

/** The blocks of all pages for readers. */
export function documentedBlocks(): readonly DocumentedBlock[] {
  const pages = ["*.md", "docs/*.md", "bench/*.md", "examples/*/README.md", "clients/*/README.md"];
  return globSync(pages, { cwd: ROOT })
    .sort()
    .flatMap((page) => blocksIn(page, "sh").map((text) => ({ page, text })));
}

/** The blocks of a page, below the root of the repository: the first one in a language, or a later one. */
export function blocksOf(page: string): (language: string, index?: number) => string {
  return (language, index = 0) => {
    const text = blocksIn(page, language)[index];
    if (text === undefined) {
      throw new Error(`${page} has no block ${index} in ${language}`);
    }
    return text;
  };
}

function blocksIn(page: string, language: string): readonly string[] {
  const text = readFileSync(join(ROOT, page), "utf8");
  const blocks = text.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, "gm"));
  return [...blocks].map(([, text = ""]) => text);
}
