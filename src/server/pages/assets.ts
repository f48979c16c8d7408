/**
 * A server of static files whose names stay the same, read once, with a strict
 * Content-Security-Policy: nothing is loaded from other origins, and no script is inline. Browsers
 * revalidate every time (`no-cache`), and the `ETag` makes that cheap; it is weak, because the
 * same file is sent compressed and as it is. It is the digest of the file: that of
 * `@fastify/static`, which serves the others, is its size and its time, and packages have the same
 * time in every release.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { acceptedCoding } from "../http/compression.ts";
import { pageHeaders } from "../http/content-security-policy.ts";

const CONTENT_TYPES: { readonly [extension: string]: string } = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

/** A file with the digest of its content in its name never changes. */
const MAX_AGE_SECONDS = 31_536_000;

/** For files with such names. */
export const IMMUTABLE = `public, max-age=${MAX_AGE_SECONDS}, immutable`;

interface Asset {
  readonly contentType: string;
  readonly etag: string;
  readonly content: Buffer;
  readonly compressed: Buffer;
}

/** Serves the files of a folder, each at the paths that `pathsOf` gives its name. */
export async function serveAssets(
  app: FastifyInstance,
  folder: URL,
  pathsOf: (name: string) => readonly string[],
): Promise<void> {
  const headers = pageHeaders();
  for (const [name, asset] of await readAssets(folder)) {
    for (const path of pathsOf(name)) {
      app.get(path, (req, res) => answer(req, res.headers(headers), asset));
    }
  }
}

async function readAssets(folder: URL): Promise<Map<string, Asset>> {
  const all = await readdir(folder).catch((cause: unknown) => {
    const path = fileURLToPath(folder);
    throw new Error(`the files of a page are not in ${path}: run npm run build`, { cause });
  });
  const names = all.filter((name) => extname(name) in CONTENT_TYPES);
  const entries = names.map(async (name): Promise<[string, Asset]> => {
    const content = await readFile(new URL(name, folder));
    const contentType = CONTENT_TYPES[extname(name)] ?? "application/octet-stream";
    const etag = `W/"${createHash("sha256").update(content).digest("base64url")}"`;
    const compressed = await promisify(gzip)(content);
    return [name, { contentType, etag, content, compressed }];
  });
  return new Map(await Promise.all(entries));
}

function answer(req: FastifyRequest, res: FastifyReply, asset: Asset): FastifyReply {
  res.headers({ etag: asset.etag, "cache-control": "no-cache" });
  const coding = acceptedCoding(res, ["gzip"]);
  const known = req.headers["if-none-match"]?.split(",").map((tag) => weak(tag.trim()));
  if (known?.includes(asset.etag) || known?.includes(weak("*"))) {
    return res.code(304).send();
  }
  res.type(asset.contentType);
  return coding === undefined
    ? res.send(asset.content)
    : res.header("content-encoding", coding).send(asset.compressed);
}

const weak = (tag: string): string => (tag.startsWith("W/") ? tag : `W/${tag}`);
