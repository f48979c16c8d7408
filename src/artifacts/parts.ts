/**
 * Large files of an artifact, in parts: `.parts/<path>/0000` and on, each of which is stored,
 * uploaded and verified by itself. An upload that broke off goes on with the part that is
 * missing, and revisions share the parts that are equal. A node unpacks them as one file.
 */
import { ArtifactError, quoted } from "./artifact-error.ts";

export const PARTS_FOLDER = ".parts/";
/** Part of a file that is uploaded by itself, and again from its start after a broken connection. */
export const MAX_PART_BYTES = 64 * 1024 ** 2;
/** Digits of the number of a part, so that the order of paths is that of parts. */
const PART_NUMBER_CHARACTERS = 4;
const PART = new RegExp(`^\\.parts/(.+)/(\\d{${PART_NUMBER_CHARACTERS}})$`);

/** A file of an artifact, or a part of one, in the unpacked artifact. */
export interface PlacedFile<File> {
  readonly file: File;
  /** Of the whole file. */
  readonly path: string;
  /** Its first byte in that file. */
  readonly start: number;
  /** The first byte of the next part; undefined: it ends with the file. */
  readonly end?: number;
}

/** The path of a part, by its number from 0. */
export function partPath(path: string, number: number): string {
  return `${path}/${String(number).padStart(PART_NUMBER_CHARACTERS, "0")}`;
}

/** The path in the unpacked artifact of a file, or of the whole of which this is a part. */
export function wholePath(path: string): string {
  return PART.exec(path)?.[1] ?? path;
}

/**
 * Where files are in the unpacked artifact; parts follow one another in the order of the index.
 * Throws an `ArtifactError` for parts without an order.
 */
export function placed<File extends { readonly path: string; readonly size: number }>(
  files: readonly File[],
): PlacedFile<File>[] {
  const parts = new Map<string, PlacedFile<File>[]>();
  return files
    .map((file): PlacedFile<File> => {
      const [, path, digits] = PART.exec(file.path) ?? [];
      if (path === undefined) {
        if (file.path.startsWith(PARTS_FOLDER)) {
          throw new ArtifactError(`${quoted(file.path)} is no part of a file`);
        }
        return { file, path: file.path, start: 0 };
      }
      const before = parts.get(path) ?? [];
      if (Number(digits) !== before.length || file.size === 0) {
        throw new ArtifactError(`${quoted(file.path)} does not follow the part before it`);
      }
      const last = before.at(-1);
      const part = { file, path, start: last === undefined ? 0 : last.start + last.file.size };
      before.push(part);
      parts.set(path, before);
      return part;
    })
    .map((each) => {
      const isLast = (parts.get(each.path)?.at(-1) ?? each) === each;
      return isLast ? each : { ...each, end: each.start + each.file.size };
    });
}
