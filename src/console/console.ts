/**
 * The console: one document for all its pages, and its files, whose names have
 * the digest of their content. `npm run build` makes both, compressed, in `dist/console/app/`.
 */
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import type { FastifyPluginAsync } from "fastify";
import { securityHeaders, serveAssets } from "./assets.ts";

/** The same folder whether this runs from `src/` or from `dist/`. */
const FOLDER = new URL("../../dist/console/app/", import.meta.url);

/** The document selects the page by its path. */
const PATHS = [
  "/",
  "/o/*",
  "/setup",
  "/sign-in",
  "/invitation",
  "/account",
  "/account-secured",
  "/cli/authorize",
  "/device",
  "/docs",
];

/** A file with the digest of its content in its name never changes. */
const MAX_AGE_SECONDS = 31_536_000;

export const consolePages: FastifyPluginAsync = async (app) => {
  await serveAssets(app, FOLDER, (name) => (name === "index.html" ? PATHS : []));
  await app.register(fastifyStatic, {
    root: fileURLToPath(new URL("assets/", FOLDER)),
    prefix: "/console/assets/",
    decorateReply: false,
    index: false,
    preCompressed: true,
    cacheControl: false,
    setHeaders: (res) => {
      res.headers({
        ...securityHeaders(),
        "cache-control": `public, max-age=${MAX_AGE_SECONDS}, immutable`,
      });
    },
  });
};
