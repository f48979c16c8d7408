/**
 * The documentation as a site: static files below `/docs/`, which a platform
 * serves beside its console. The search index is a file of the site, so nothing
 * is asked of another server. `npm run docs` builds it; a link that leads
 * nowhere fails the build.
 */
import { readdirSync } from "node:fs";
import { relative, sep } from "node:path";
import { defineConfig, type MarkdownRenderer } from "vitepress";
import { inlineScripts } from "./inline-scripts.ts";
import { PAGES, ROOT, resolveLink, sidebar, slugify } from "./pages.ts";

const FOLDERS = readdirSync(ROOT, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !["docs", "bench"].includes(entry.name))
  .map(({ name }) => `${name}/**`);
/** The README is for those who have no site yet. */
const OUTSIDE = ["README.md", ...FOLDERS];

/** Turns links between documents into links between pages; names of sources stay as text. */
function linkPages(md: MarkdownRenderer): void {
  md.core.ruler.push("pages", ({ tokens, env }) => {
    const source = relative(ROOT, env.realPath ?? env.path).replaceAll(sep, "/");
    for (const { children } of tokens) {
      let isText = false;
      for (const token of children ?? []) {
        if (token.type === "link_open") {
          const href = String(token.attrGet("href"));
          const isOther = /^(?:[a-z]+:|#|\/)/.test(href);
          const target = isOther ? href : resolveLink(source, decodeURI(href));
          isText = target === undefined;
          token.attrSet("href", target ?? "");
        }
        if (isText && token.type.startsWith("link_")) {
          isText = token.type === "link_open";
          Object.assign(token, { type: "text", tag: "", content: "", nesting: 0 });
        }
      }
    }
  });
}

/** A cell of a header without text heads nothing. */
function openEmptyHeaders(md: MarkdownRenderer): void {
  md.core.ruler.push("empty-headers", ({ tokens }) => {
    for (const [at, token] of tokens.entries()) {
      if (token.type === "th_open" && tokens[at + 1]?.content === "") {
        token.tag = "td";
        const close = tokens[at + 2];
        if (close !== undefined) {
          close.tag = "td";
        }
      }
    }
  });
}

export default defineConfig({
  title: "Tessera",
  description: "A platform for slow functions that a team runs itself",
  lang: "en",
  base: "/docs/",
  head: [["link", { rel: "icon", href: "/docs/favicon.svg", type: "image/svg+xml" }]],
  // It would write a style element, which the policy refuses.
  appearance: { disableTransition: false },
  srcDir: ROOT,
  srcExclude: OUTSIDE,
  rewrites: Object.fromEntries(PAGES),
  outDir: `${ROOT}/dist/docs`,
  cacheDir: `${ROOT}/node_modules/.cache/vitepress`,
  // The scripts that pages would have in them are files, as the console's policy asks.
  metaChunk: true,
  transformHtml: inlineScripts(`${ROOT}/dist/docs`, "/docs/"),
  // Addresses of programs that a reader starts.
  ignoreDeadLinks: "localhostLinks",
  // The search index of all pages is one file, which the first search loads.
  vite: { build: { chunkSizeWarningLimit: 1_500 } },
  markdown: {
    // What stands in angle brackets is text.
    html: false,
    anchor: { slugify },
    // Their colours have the contrast that small text needs.
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config: (md) => {
      linkPages(md);
      openEmptyHeaders(md);
    },
  },
  themeConfig: {
    logo: { src: "/favicon.svg", alt: "" },
    search: { provider: "local" },
    outline: [2, 3],
    sidebar: sidebar(),
    nav: [
      { text: "Quickstart", link: "/quickstart.html" },
      { text: "Operate", link: "/production.html" },
      { text: "Errors", link: "/troubleshooting.html" },
      // The platform's own pages, one step above the site.
      { text: "API", link: "/../reference/", target: "_self" },
      { text: "Console", link: "/../", target: "_self" },
    ],
  },
});
