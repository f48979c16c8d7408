import type { FastifyPluginAsync } from "fastify";
import { serveAssets } from "./assets.ts";

const FOLDER = new URL("../../console/playground/", import.meta.url);

/** The playground, a deployment's interactive page: `/` and its files below `/assets/`. */
export const playground: FastifyPluginAsync = (app) =>
  serveAssets(app, FOLDER, (name) => [name === "index.html" ? "/" : `/assets/${name}`]);

/** The same on the platform's host, as a part of the console: the address names the deployment. */
export const consolePlayground: FastifyPluginAsync = (app) =>
  serveAssets(
    app,
    FOLDER,
    (name) => [`/console/playground/${name === "index.html" ? "" : `assets/${name}`}`],
    { inFrame: true },
  );
