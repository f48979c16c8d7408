/**
 * The documentation: a site of static files below `/docs/`, for anyone, which
 * `npm run build` makes in `dist/docs/` with compressed copies beside them.
 *
 * The reference of the API is a page of the console, at `/reference`. A slash at the end of either
 * address, or none, makes no difference. The reference was at `/docs` once: links to a search there
 * lead to it from here, and the site's first page leads links to an operation on, because no server
 * sees what follows the `#`.
 */
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import type { FastifyPluginAsync } from "fastify";
import { pageHeaders } from "../http/content-security-policy.ts";
import { IMMUTABLE } from "./assets.ts";

/** The same folder whether this runs from `src/` or from `dist/`. */
const FOLDER = new URL("../../../dist/docs/", import.meta.url);

const REFERENCE = "/reference";

export const documentation: FastifyPluginAsync = async (app) => {
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
    root: fileURLToPath(FOLDER),
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
