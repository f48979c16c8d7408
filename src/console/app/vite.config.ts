/**
 * Builds the console into dist/console/app: hashed names, one chunk for each page. In the mode
 * `playground` it builds the page of a deployment into dist/console/playground: names that stay,
 * one chunk, and addresses that are relative to it.
 */
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const pathOf = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** What is seen of an organization's page before any script has run. */
const SKELETON = `<div class="skeleton" aria-hidden="true">
      <div class="skeleton-navigation">${"<i></i>".repeat(6)}</div>
      <div class="skeleton-page">${"<i></i>".repeat(4)}</div>
    </div>`;

/** Writes the document of the pages of organizations: the same, with what is seen first. */
const organizationDocument = (): Plugin => ({
  name: "organization-document",
  enforce: "post",
  generateBundle(_options, bundle) {
    const document = bundle["index.html"];
    if (document?.type === "asset") {
      const [before, behind] = String(document.source).split("<noscript>");
      const source = `${before}${SKELETON}\n    <noscript>${behind}`;
      this.emitFile({ type: "asset", fileName: "organization.html", source });
    }
  },
});

export default defineConfig(({ mode }) => {
  const isPlayground = mode === "playground";
  return {
    root: pathOf("."),
    base: isPlayground ? "./" : "/console/",
    plugins: [react(), ...(isPlayground ? [] : [organizationDocument()])],
    build: {
      outDir: pathOf(`../../../dist/console/${isPlayground ? "playground" : "app"}/`),
      emptyOutDir: true,
      // Everything is a file of its own: the policy of the page allows no inline anything.
      assetsInlineLimit: 0,
      modulePreload: { polyfill: false },
      chunkSizeWarningLimit: 400,
      rolldownOptions: isPlayground
        ? {
            input: pathOf("playground.html"),
            output: { entryFileNames: "assets/[name].js", assetFileNames: "assets/[name].[ext]" },
          }
        : {
            // What every page loads is one file beside the first, and what forms and pages outside of an
            // organization have is one more: each file costs a request and its headers.
            output: {
              codeSplitting: {
                groups: [
                  {
                    name: "base",
                    test: /ui.(button|data-table|icon|menu|notice|page|status|time|typed-ahead)\.tsx?$|shell.(brand|keys)\.tsx?$|tasks.state\.tsx$|api.(errors|session|sign-in|token-access|tokens)\.ts$|(mutation|react-dom-client\.production|useLocation|useSuspenseInfiniteQuery|infiniteQueryObserver|infiniteQueryOptions)\.js$/,
                  },
                  {
                    name: "forms",
                    test: /ui.(field|fields|fields-form|form|form-actions)\.tsx?$|(safe-path|single-page)\.tsx?$/,
                  },
                ],
              },
            },
          },
    },
  };
});
