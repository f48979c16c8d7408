import type { FastifyPluginAsync } from "fastify";
import { serveAssets } from "./assets.ts";

const PAGES = new URL("./pages/", import.meta.url);

/** The page shares the playground's style and its DOM helpers. */
const PLAYGROUND = new URL("./playground/", import.meta.url);
const SHARED = ["dom.js", "favicon.svg", "playground.css", "controls.css"];

/** The reference of the platform's API. */
export const pages: FastifyPluginAsync = async (app) => {
  await serveAssets(app, PAGES, (name) =>
    name === "page.html" ? ["/docs"] : [`/assets/pages/${name}`],
  );
  await serveAssets(app, PLAYGROUND, (name) =>
    SHARED.includes(name) ? [`/assets/playground/${name}`] : [],
  );
};
