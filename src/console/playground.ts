import type { FastifyPluginAsync } from "fastify";
import { serveAssets } from "./assets.ts";

const FOLDER = new URL("./playground/", import.meta.url);

/** The playground, a deployment's interactive page: `/` and its files below `/assets/`. */
export const playground: FastifyPluginAsync = (app) =>
  serveAssets(app, FOLDER, (name) => [name === "index.html" ? "/" : `/assets/${name}`]);
