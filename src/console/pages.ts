import type { FastifyPluginAsync } from "fastify";
import { serveAssets } from "./assets.ts";

const PAGES = new URL("./pages/", import.meta.url);

/** The pages share the playground's style and its DOM helpers. */
const PLAYGROUND = new URL("./playground/", import.meta.url);
const SHARED = ["dom.js", "favicon.svg", "playground.css", "controls.css"];

/** One document for all paths; its script selects the page. */
const PATHS = [
  "/setup",
  "/sign-in",
  "/invitation",
  "/account",
  "/account-secured",
  "/cli/authorize",
  "/device",
  "/docs",
];

/** The pages of the platform: setup, sign-in, invitation, account, command-line logins, and the reference of its API. */
export const pages: FastifyPluginAsync = async (app) => {
  await serveAssets(app, PAGES, (name) =>
    name === "page.html" ? PATHS : [`/assets/pages/${name}`],
  );
  await serveAssets(app, PLAYGROUND, (name) =>
    SHARED.includes(name) ? [`/assets/playground/${name}`] : [],
  );
};
