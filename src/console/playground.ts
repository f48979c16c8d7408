import type { FastifyPluginAsync } from "fastify";
import { serveAssets } from "./assets.ts";

const FOLDER = new URL("./playground/", import.meta.url);

/** The interactive page of a deployment: `/` and what it loads from `/assets/`. */
export const playground: FastifyPluginAsync = (app) =>
  serveAssets(app, FOLDER, (name) => [name === "index.html" ? "/" : `/assets/${name}`]);
