/** The commands of the documents: the blocks of `sh` in their pages. */
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
    .flatMap((page) => {
      const text = readFileSync(join(ROOT, page), "utf8");
      const blocks = text.matchAll(/^```sh\n([\s\S]*?)^```/gm);
      return [...blocks].map(([, text = ""]) => ({ page, text }));
    });
}
