/**
 * The console: one document for all its pages, and its files, whose names have
 * the digest of their content. `npm run build` makes both, compressed, in `dist/console/app/`.
 */
import { fileURLToPath } from "node:url";
import fastifyStatic from "@fastify/static";
import type { FastifyPluginAsync } from "fastify";
import { pageHeaders } from "../http/content-security-policy.ts";
import { IMMUTABLE, serveAssets } from "./assets.ts";
import { documentation } from "./documentation.ts";

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
