/** Turns the parts of a form into arguments: values by name, and files, which are kept as they arrive. */
import type { JsonObject } from "@bufbuild/protobuf";
import { faultOfJson, MAX_JSON_VALUES, type ValueRoom } from "../../collections/json-scan.ts";
import { type FieldViolation, problem } from "../../errors.ts";
import type { FileKeeper } from "../../files/keeper.ts";
import type { EndpointManifest, FileArgument } from "../../protocol/manifest.ts";
import {
  type FileFacts,
  type FileValue,
  MAX_INLINE_FILE_BYTES,
  type StoredFile,
} from "../../protocol/messages.ts";
import { fileFromDataUrl, tooLarge } from "./file.ts";
import type { PartsTaker } from "./multipart.ts";

/** A file that the caller sent. */
export type GivenFile = FileValue | StoredFile;

export interface FormOptions {
  readonly keeper: FileKeeper;
  /** Limit of the texts and small files of one form, which are held in memory. */
  readonly maxHeldBytes: number;
  /** Reports how much is held so far; throws when that is too much for the server. */
  hold?(bytes: number): void;
}

/** Collects the parts of one form for an endpoint. */
export class FormTaker implements PartsTaker {
  readonly fields: JsonObject = {};
  readonly files = new Map<string, GivenFile[]>();
  readonly violations: FieldViolation[] = [];
  readonly #endpoint: EndpointManifest;
  readonly #options: FormOptions;
  /** All texts of the form share the bound of one body. */
  readonly #room: ValueRoom = { values: MAX_JSON_VALUES };
  #heldBytes = 0;

  constructor(endpoint: EndpointManifest, options: FormOptions) {
    this.#endpoint = endpoint;
    this.#options = options;
  }

  /** Every kept file, also of a refused form. */
  get kept(): GivenFile[] {
    return [...this.files.values()].flat();
  }

  takeText(name: string, text: string): void {
    this.#hold(text.length);
    if (this.#argument(name) === undefined) {
      const property = propertyOf(this.#endpoint, name);
      addField(this.fields, { name, value: this.#valueOf(text, property) }, property);
      return;
    }
    const file = fileFromDataUrl(text);
    if (typeof file === "string") {
      this.violations.push({ field: name, description: file });
    } else {
      this.#listOf(name).push(file);
    }
  }

  async takeFile(name: string, facts: FileFacts, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const argument = this.#argument(name);
    if (argument === undefined) {
      const description = "is a file, but this argument does not take one";
      this.violations.push({ field: name, description });
    }
    const list = argument ? this.#listOf(name) : [];
    // Files keep the order of their parts, however long each takes.
    const place = list.push({ ...facts, data: NO_BYTES }) - 1;
    const wanted = argument !== undefined && place < maxFiles(argument);
    const limit = wanted ? (argument.maxBytes ?? Number.POSITIVE_INFINITY) : 0;
    const taken = new UpTo(limit, chunks);
    const { keeper, maxHeldBytes } = this.#options;
    const inlineBytes = Math.max(
      0,
      Math.min(MAX_INLINE_FILE_BYTES, maxHeldBytes - this.#heldBytes),
    );
    this.#options.hold?.(this.#heldBytes + inlineBytes);
    const file = await keeper.keep(facts, taken, inlineBytes);
    list[place] = file;
    if ("data" in file) {
      this.#heldBytes += file.data.byteLength;
    }
    if (wanted && taken.bytes > limit) {
      const description = tooLarge(limit, { ...facts, bytes: taken.bytes });
      this.violations.push({ field: name, description });
    }
  }

  /**
   * A text part is JSON, as client libraries send it, or bare text, as people type it;
   * the argument's type decides if it could be both.
   */
  #valueOf(text: string, property: Property): unknown {
    if (property?.type === "string" && !/^\s*"/.test(text)) {
      return text;
    }
    // Bare text is no JSON from its first characters on, and is not counted.
    const fault = /^\s*[[{]/.test(text) ? faultOfJson(Buffer.from(text), this.#room) : undefined;
    if (fault !== undefined) {
      throw problem("BODY_MALFORMED", `the form ${fault}`);
    }
    try {
      return JSON.parse(text);
    } catch {
      // Not JSON: bare text.
      return text;
    }
  }

  #argument(name: string): FileArgument | undefined {
    const { files } = this.#endpoint;
    return Object.hasOwn(files, name) ? files[name] : undefined;
  }

  #listOf(name: string): GivenFile[] {
    const list = this.files.get(name) ?? [];
    this.files.set(name, list);
    return list;
  }

  #hold(bytes: number): void {
    const { maxHeldBytes, hold } = this.#options;
    this.#heldBytes += bytes;
    if (this.#heldBytes > maxHeldBytes) {
      const message = `the texts of the form are larger than ${maxHeldBytes} bytes together; send large values as files, or less`;
      throw problem("BODY_TOO_LARGE", message);
    }
    hold?.(this.#heldBytes);
  }
}

const NO_BYTES = new Uint8Array(0);

/** The number of files to keep: with more, the call is refused. */
function maxFiles({ array, maxItems }: FileArgument): number {
  return array ? (maxItems ?? Number.POSITIVE_INFINITY) : 1;
}

/** Passes on the first bytes of a source; counts and discards the rest. */
class UpTo implements AsyncIterable<Uint8Array> {
  readonly #limit: number;
  readonly #chunks: AsyncIterable<Uint8Array>;
  bytes = 0;

  constructor(limit: number, chunks: AsyncIterable<Uint8Array>) {
    this.#limit = limit;
    this.#chunks = chunks;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of this.#chunks) {
      this.bytes += chunk.length;
      if (this.bytes <= this.#limit) {
        yield chunk;
      }
    }
  }
}

type Property = { readonly type?: unknown } | undefined;

function propertyOf({ input }: EndpointManifest, name: string): Property {
  const properties = (input.properties ?? {}) as { readonly [name: string]: Property };
  return Object.hasOwn(properties, name) ? properties[name] : undefined;
}

/** Adds a value to the arguments; parts of one name make a list. */
function addField(
  fields: JsonObject,
  { name, value }: { readonly name: string; readonly value: unknown },
  property: Property,
): void {
  const earlier = Object.hasOwn(fields, name) ? fields[name] : undefined;
  if (earlier === undefined) {
    const alone = property?.type === "array" && !Array.isArray(value);
    setField(fields, name, alone ? [value] : value);
  } else {
    setField(fields, name, [...(Array.isArray(earlier) ? earlier : [earlier]), value]);
  }
}

/** Sets a member, also for names such as `__proto__`. */
function setField(fields: JsonObject, name: string, value: unknown): void {
  Object.defineProperty(fields, name, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}
