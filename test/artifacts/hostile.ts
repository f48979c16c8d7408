/** Artifacts as somebody would make them who means harm. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { Header } from "tar";
import { createIndex, writeIndex } from "../../src/artifacts/index-file.ts";
import type { ServiceManifest } from "../../src/protocol/manifest.ts";

export const SERVICE: ServiceManifest = { name: "tried", endpoints: [] };

export interface Entry {
  readonly path: string;
  readonly content?: string | Uint8Array;
  readonly type?: "File" | "SymbolicLink" | "Link" | "CharacterDevice" | "Directory" | "FIFO";
  readonly linkpath?: string;
  /** What the header says instead of the content's size. */
  readonly size?: number;
}

export function fileOf(path: string, content: string | Uint8Array = "") {
  const bytes = Buffer.from(content);
  return {
    path,
    size: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
    executable: false,
  };
}

/** The text of a good index, changed afterwards as one likes. */
export function indexText(
  files: readonly Entry[],
  change: (index: Record<string, unknown>) => object = (index) => index,
): string {
  const service = { path: "service.js", content: "" };
  const listed = files.some(({ path }) => path === service.path) ? files : [...files, service];
  const good = writeIndex(createIndex(SERVICE, [fileOf("service.js")]));
  const index = JSON.parse(good) as Record<string, unknown>;
  const indexed = listed
    .map(({ path, content }) => fileOf(path, content))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ executable, path, sha256, size }) => ({ executable, path, sha256, size }));
  return JSON.stringify(change({ ...index, files: indexed }));
}

/** A tar of entries in the order given, without its end when it is to be cut. */
export function tarOf(entries: readonly Entry[]): Buffer {
  const blocks = entries.flatMap(({ path, content = "", type = "File", linkpath, size }) => {
    const bytes = Buffer.from(content);
    const header = new Header({
      path,
      type,
      size: size ?? bytes.length,
      mode: 0o644,
      mtime: new Date(0),
      ...(linkpath !== undefined && { linkpath }),
    });
    header.encode();
    const padding = Buffer.alloc((512 - (bytes.length % 512)) % 512);
    return [header.block ?? Buffer.alloc(0), bytes, padding];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

/** A whole artifact: the index, then the entries. */
export function artifactOf(text: string, entries: readonly Entry[]): Buffer {
  return gzipSync(tarOf([{ path: "tessera.json", content: text }, ...entries]));
}

/** The same in small parts, as they arrive over a network. */
export async function* inParts(bytes: Uint8Array, length = 1_000) {
  for (let at = 0; at < bytes.length; at += length) {
    yield bytes.subarray(at, at + length);
  }
}
