/** The page of a deployment: its playground at `/`, with its files below `/assets/`. */
import type { FastifyPluginAsync } from "fastify";
import { serveAssets } from "./assets.ts";

/** The same folder whether this runs from `src/` or from `dist/`; `npm run build` makes it. */
const FOLDER = new URL("../../../dist/console/playground/", import.meta.url);

export const playground: FastifyPluginAsync = async (app) => {
  await serveAssets(app, FOLDER, () => ["/"]);
  await serveAssets(app, new URL("assets/", FOLDER), (name) => [`/assets/${name}`]);
};
