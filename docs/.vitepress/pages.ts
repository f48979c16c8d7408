/**
 * Which documents are pages of the site, and where: everything in `docs/`, and
 * the documents of the repository that people also read. The sidebar names
 * pages that may be absent, and lists those that exist.
 */
import { existsSync, globSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

/** Documents outside `docs/`, with the names that they have on the site. */
const OTHERS: { readonly [source: string]: string } = {
  "ARCHITECTURE.md": "architecture.md",
  "CONTRIBUTING.md": "contributing.md",
  "CHANGELOG.md": "changelog.md",
  "SECURITY.md": "security.md",
  "bench/README.md": "benchmarks.md",
  "bench/HISTORY.md": "benchmarks-history.md",
};

/** Each document with its page, both as paths from their roots. */
export const PAGES: ReadonlyMap<string, string> = new Map([
  ...globSync("docs/**/*.md", { cwd: ROOT })
    .sort()
    .map((source): [string, string] => [
      source,
      source.slice("docs/".length).replace(/(^|\/)README\.md$/, "$1index.md"),
    ]),
  ...Object.entries(OTHERS).filter(([source]) => existsSync(join(ROOT, source))),
]);

/** One group for each reader. */
const GROUPS: readonly (readonly [title: string, pages: readonly string[]])[] = [
  ["Start", ["index", "quickstart", "install", "cli", "faq", "comparison", "glossary"]],
  [
    "Write a service",
    [
      "typescript-services",
      "python-services",
      "serve",
      "deploy",
      "models",
      "servers",
      "scaling",
      "logs",
      "metrics",
      "tracing",
      "coming-from-bentoml",
    ],
  ],
  [
    "Call a service",
    [
      "calls",
      "tokens",
      "http",
      "typescript",
      "python",
      "grpc",
      "go",
      "java",
      "rust",
      "troubleshooting",
    ],
  ],
  ["Come from a queue", ["coming-from-celery", "coming-from-bullmq"]],
  [
    "Operate",
    [
      ...["platform", "production", "sizing", "configuration", "limits", "backup", "upgrade"],
      ...["restarts", "high-availability", "workers", "benchmarks", "benchmarks-history"],
    ],
  ],
  ["Security", ["security-model", "sandbox", "security"]],
  ["Contribute", ["contributing", "architecture", "decisions/index", "changelog"]],
];

/** The sidebar; a page that no group names stands in the last one, so that none is lost. */
export function sidebar() {
  const sources = new Map([...PAGES].map(([source, page]) => [page.replace(/\.md$/, ""), source]));
  const named = new Set(GROUPS.flatMap(([, pages]) => pages));
  const others = [...sources.keys()].filter(
    (page) => !named.has(page) && !page.startsWith("decisions/"),
  );
  return [...GROUPS, ["More", others] as const].flatMap(([text, pages]) => {
    const items = pages.flatMap((page) => {
      const source = sources.get(page);
      return source === undefined ? [] : [{ text: titleOf(source), link: linkTo(`${page}.md`) }];
    });
    return items.length === 0 ? [] : [{ text, items }];
  });
}

/** The address of a page within the site. */
export function linkTo(page: string): string {
  return `/${page.replace(/(^|\/)index\.md$/, "$1").replace(/\.md$/, ".html")}`;
}

/** The first heading. */
function titleOf(source: string): string {
  const [, title = source] = /^# (.*)$/m.exec(readFileSync(join(ROOT, source), "utf8")) ?? [];
  return title.replaceAll("`", "");
}

/** Anchors as code hosts make them, so that links work in both places. */
export function slugify(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, "")
    .replaceAll(" ", "-");
}

/**
 * Where a link of a document leads on the site: undefined for a file that is no page, such as a
 * source. Throws where there is nothing at all.
 */
export function resolveLink(source: string, href: string): string | undefined {
  const [path = "", anchor] = href.split("#");
  const target = posix.normalize(posix.join(posix.dirname(source), path)).replace(/\/$/, "");
  const page = PAGES.get(target) ?? PAGES.get(`${target}/README.md`);
  if (page !== undefined) {
    return linkTo(page) + (anchor === undefined ? "" : `#${anchor}`);
  }
  if (target.startsWith("..") || !existsSync(join(ROOT, target))) {
    throw new Error(`${source} links to ${href}, and there is no ${target}`);
  }
  return undefined;
}
