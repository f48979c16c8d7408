/**
 * The console: one document for all its pages, and its files, whose names have
 * the digest of their content. `npm run build` makes both, compressed, in `dist/console/app/`.
 */
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import type { FastifyPluginAsync } from "fastify";
import { pageHeaders } from "../http/content-security-policy.ts";
import { IMMUTABLE, serveAssets } from "./assets.ts";

/** The same folder whether this runs from `src/` or from `dist/`. */
const FOLDER = new URL("../../../dist/console/app/", import.meta.url);

/** The document selects the page by its path. */
const PATHS = [
  "/",
  "/setup",
  "/sign-in",
  "/invitation",
  "/account",
  "/account-secured",
  "/cli/authorize",
  "/device",
  "/reference",
];

/** That of organizations shows their frame before any script has run. */
const PATHS_OF: Readonly<Record<string, readonly string[]>> = {
  "index.html": PATHS,
  "organization.html": ["/o/*"],
};

export const consolePages: FastifyPluginAsync = async (app) => {
  await serveAssets(app, FOLDER, (name) => PATHS_OF[name] ?? []);
  await app.register(documentation);
  await app.register(fastifyStatic, {
    root: fileURLToPath(new URL("assets/", FOLDER)),
    prefix: "/console/assets/",
    decorateReply: false,
    index: false,
    preCompressed: true,
    cacheControl: false,
    setHeaders: (res) => {
      res.headers({
        ...pageHeaders(),
        "cache-control": IMMUTABLE,
      });
    },
  });
};

// The documentation: a site of static files below `/docs/`, for anyone, which
// `npm run build` makes in `dist/docs/` with compressed copies beside them.
//
// The reference of the API is a page of the console, at `/reference`. A slash at the end of either
// address, or none, makes no difference. The reference was at `/docs` once: links to a search there
// lead to it from here, and the site's first page leads links to an operation on, because no server
// sees what follows the `#`.

/** The same folder whether this runs from `src/` or from `dist/`. */
const DOCS_FOLDER = new URL("../../../dist/docs/", import.meta.url);

const REFERENCE = "/reference";

const documentation: FastifyPluginAsync = async (app) => {
  app.get<{ Querystring: { readonly search?: unknown } }>("/docs", (req, reply) => {
    const { search } = req.query;
    const to =
      typeof search === "string"
        ? `${REFERENCE}?${new URLSearchParams({ search }).toString()}`
        : "/docs/";
    return reply.redirect(to, 308);
  });
  app.get(`${REFERENCE}/`, (_req, reply) => reply.redirect(REFERENCE, 308));
  const headers = pageHeaders({ styleAttributes: true });
  await app.register(fastifyStatic, {
    root: fileURLToPath(DOCS_FOLDER),
    prefix: "/docs/",
    decorateReply: false,
    // One route for each file, so that other paths are answered as everywhere.
    wildcard: false,
    globIgnore: ["**/*.gz"],
    preCompressed: true,
    cacheControl: false,
    // Both are made of the time of a file, which npm sets to the same for every release: a page of
    // the same size would count as known, and lead to files that are gone.
    etag: false,
    lastModified: false,
    setHeaders: (res, path) => {
      const isNamedByDigest = path.includes("/assets/");
      res.headers({
        ...headers,
        "cache-control": isNamedByDigest ? IMMUTABLE : "no-cache",
      });
    },
  });
};
