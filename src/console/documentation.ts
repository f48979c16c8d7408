/**
 * The documentation: a site of static files below `/docs/`, for anyone, which
 * `npm run build` makes in `dist/docs/` with compressed copies beside them.
 */
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import type { FastifyPluginAsync } from "fastify";
import { IMMUTABLE, securityHeaders } from "./assets.ts";

/** The same folder whether this runs from `src/` or from `dist/`. */
const FOLDER = new URL("../../dist/docs/", import.meta.url);

export const documentation: FastifyPluginAsync = async (app) => {
  const headers = securityHeaders({ styleAttributes: true });
  await app.register(fastifyStatic, {
    root: fileURLToPath(FOLDER),
    prefix: "/docs/",
    decorateReply: false,
    // One route for each file, so that other paths are answered as everywhere.
    wildcard: false,
    globIgnore: ["**/*.gz"],
    preCompressed: true,
    cacheControl: false,
    setHeaders: (res, path) => {
      const isNamedByDigest = path.includes("/assets/");
      res.headers({
        ...headers,
        "cache-control": isNamedByDigest ? IMMUTABLE : "no-cache",
      });
    },
  });
};
