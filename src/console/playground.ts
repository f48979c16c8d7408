import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from "fastify";

const FOLDER = new URL("./playground/", import.meta.url);

const CONTENT_TYPES: { readonly [extension: string]: string } = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** Only what comes from this server; results are shown from memory (`blob:`). */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "media-src blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

interface Asset {
  readonly contentType: string;
  readonly etag: string;
  readonly content: Buffer;
}

/**
 * The interactive page of a deployment: `/` and what it loads from `/assets/`.
 * The files are read once, when the plugin is registered. Browsers ask again
 * each time (`no-cache`) and are told by the `ETag` that nothing has changed.
 */
export const playground: FastifyPluginAsync = async (app) => {
  for (const [name, asset] of await readAssets()) {
    const path = name === "index.html" ? "/" : `/assets/${name}`;
    app.get(path, (req, res) => answer(req, res, asset));
  }
};

async function readAssets(): Promise<Map<string, Asset>> {
  const names = (await readdir(FOLDER)).filter((name) => extname(name) in CONTENT_TYPES);
  const entries = names.map(async (name): Promise<[string, Asset]> => {
    const content = await readFile(new URL(name, FOLDER));
    const contentType = CONTENT_TYPES[extname(name)] ?? "application/octet-stream";
    const etag = `"${createHash("sha256").update(content).digest("base64url")}"`;
    return [name, { contentType, etag, content }];
  });
  return new Map(await Promise.all(entries));
}

function answer(req: FastifyRequest, res: FastifyReply, asset: Asset): FastifyReply {
  res.headers({
    etag: asset.etag,
    "cache-control": "no-cache",
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
  });
  const known = req.headers["if-none-match"]
    ?.split(",")
    .map((tag) => tag.trim().replace(/^W\//, ""));
  if (known?.includes(asset.etag) || known?.includes("*")) {
    return res.code(304).send();
  }
  return res.type(asset.contentType).send(asset.content);
}
