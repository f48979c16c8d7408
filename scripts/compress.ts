/** Compresses what is built, once and as well as possible, for the server to send as it is. */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const ENCODINGS = {
  br: (content: Buffer) =>
    brotliCompressSync(content, {
      params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY },
    }),
  gz: (content: Buffer) => gzipSync(content, { level: 9 }),
};

/** Smallest text that is compressed: pages of the console load many that are small. */
const MIN_TEXT_BYTES = 256;

/** Writes compressed copies beside the texts of a folder and of those below it, but for those excluded. */
export function compress(
  folder: string,
  encodings: readonly (keyof typeof ENCODINGS)[],
  exclude: readonly string[] = [],
): void {
  for (const name of globSync("**/*.{html,js,css,svg}", { cwd: folder, exclude })) {
    const path = join(folder, name);
    const content = readFileSync(path);
    for (const encoding of content.length < MIN_TEXT_BYTES ? [] : encodings) {
      writeFileSync(`${path}.${encoding}`, ENCODINGS[encoding](content));
    }
  }
}
