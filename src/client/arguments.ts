/**
 * Encodes arguments as a request body: JSON, or multipart when they contain a
 * file. Files are streamed and can be read again for a retry.
 */
import { writeBigInt } from "../collections/exact-json.ts";

/** A file argument. Without a name it is sent as `file`. */
export type FileLike = Blob | Uint8Array | ArrayBuffer;

/** A body that can be sent more than once. */
interface Body {
  /** Absent where `fetch` sets it itself. */
  readonly contentType?: string;
  make(): RequestInit["body"];
}

/** Encodes arguments as a body. Throws a `TypeError` for arguments that cannot be sent. */
export function bodyOf(args: unknown): Body {
  const values = args ?? {};
  if (typeof values !== "object" || Array.isArray(values) || isFile(values)) {
    throw new TypeError("arguments must be an object: { name: value }");
  }
  const entries = Object.entries(values).filter(([, value]) => value !== undefined);
  if (!entries.some(([, value]) => isFile(value) || isFileList(value))) {
    const json = JSON.stringify(values, writeBigInt);
    return { contentType: jsonTypeOf(entries), make: () => json };
  }
  const parts = entries.flatMap(([name, value]) => partsOf(name, value));
  return {
    make() {
      const form = new FormData();
      for (const [name, value] of parts) {
        // A Blob gets a name, because a part without one is not a file.
        typeof value === "string"
          ? form.append(name, value)
          : form.append(name, value, nameOf(value));
      }
      return form;
    },
  };
}

/**
 * The type of arguments in JSON. One object alone might be taken for the value of the one argument
 * of an endpoint whose body is that, so it is said that it is by name.
 */
export function jsonTypeOf(entries: readonly (readonly [string, unknown])[]): string {
  const [[, first] = []] = entries;
  const isObject = typeof first === "object" && first !== null && !Array.isArray(first);
  return entries.length === 1 && isObject
    ? "application/vnd.tessera.arguments+json"
    : "application/json";
}

function partsOf(name: string, value: unknown): (readonly [string, string | Blob])[] {
  if (isFile(value)) {
    return [[name, blobOf(value)]];
  }
  if (isFileList(value)) {
    return value.map((each) => [name, blobOf(each)] as const);
  }
  return [[name, JSON.stringify(value, writeBigInt)]];
}

function isFile(value: unknown): value is FileLike {
  return value instanceof Blob || value instanceof ArrayBuffer || value instanceof Uint8Array;
}

function isFileList(value: unknown): value is readonly FileLike[] {
  return Array.isArray(value) && value.length > 0 && value.every(isFile);
}

function blobOf(value: FileLike): Blob {
  return value instanceof Blob ? value : new Blob([value as ArrayBuffer]);
}

function nameOf(blob: Blob): string {
  return blob instanceof File && blob.name !== "" ? blob.name : "file";
}
