/**
 * Moves the scripts that VitePress writes into each page (the theme before the
 * first paint, the platform of the reader) into files of their own, named by
 * the digest of their content: the Content-Security-Policy allows no inline
 * script.
 */
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const INLINE = /<script id="([a-z-]+)">([\s\S]*?)<\/script>/g;

/** A hook of VitePress for a site that is written into `folder` and served at `base`. */
export function inlineScripts(folder: string, base: string): (html: string) => string {
  return (html) => {
    const own = html.replace(INLINE, (_, id: string, code: string) => {
      const digest = createHash("sha256").update(code).digest("hex").slice(0, 12);
      const name = `assets/${id}.${digest}.js`;
      mkdirSync(join(folder, "assets"), { recursive: true });
      writeFileSync(join(folder, name), code);
      return `<script src="${base}${name}"></script>`;
    });
    const [left] = /<script(?![^>]*\b(?:src|type="application\/json")=?)[^>]*>/.exec(own) ?? [];
    if (left !== undefined) {
      throw new Error(`a page has the inline script ${left}, which its policy refuses`);
    }
    return own;
  };
}
