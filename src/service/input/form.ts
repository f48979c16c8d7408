/** Takes the parts of a form: texts by name (`form-fields.ts`), and files, which are kept as they arrive. */
import { isUtf8 } from "node:buffer";
import { type FieldViolation, problem } from "../../errors.ts";
import type { EndpointManifest, FileArgument } from "../../protocol/manifest.ts";
import { type FileFacts, MAX_INLINE_FILE_BYTES } from "../../protocol/messages.ts";
import type { FileKeeper } from "../../storage/files/keeper.ts";
import { fileFromDataUrl, type GivenFile, tooLarge } from "./file.ts";
import type { FormTexts } from "./form-fields.ts";
import { typeTaken, UNKNOWN_TYPE } from "./media-type.ts";
import type { PartsTaker } from "./multipart.ts";

export interface FormOptions {
  readonly keeper: FileKeeper;
  /** Limit of the texts and small files of one form, which are held in memory. */
  readonly maxHeldBytes: number;
  /** Reports how much is held so far; throws when that is too much for the server. */
  hold?(bytes: number): void;
}

/** Collects the parts of one form for an endpoint. */
export class FormTaker implements PartsTaker {
  readonly #files = new Map<string, GivenFile[]>();
  readonly violations: FieldViolation[] = [];
  readonly #texts: FormTexts = new Map();
  readonly #endpoint: EndpointManifest;
  readonly #options: FormOptions;
  /** Of all texts together. */
  textLength = 0;
  #heldBytes = 0;

  constructor(endpoint: EndpointManifest, options: FormOptions) {
    this.#endpoint = endpoint;
    this.#options = options;
  }

  /**
   * The files by argument. What a browser sends for a field in which no file was chosen is left out,
   * and a list that has to be there is empty without any part: generated clients say so in no other way.
   */
  chosen(): ReadonlyMap<string, readonly GivenFile[]> {
    const chosen = new Map<string, GivenFile[]>();
    for (const [name, { array, required, minItems = 0 }] of Object.entries(this.#endpoint.files)) {
      if (array && required && minItems === 0) {
        chosen.set(name, []);
      }
    }
    for (const [name, files] of this.#files) {
      const some = files.filter((file) => !isUnchosen(file));
      if (some.length > 0 || this.#argument(name)?.array === true) {
        chosen.set(name, some);
      }
    }
    return chosen;
  }

  /** The texts of each argument, in the order of their parts. */
  get texts(): FormTexts {
    return this.#texts;
  }

  /** Every kept file, also of a refused form. */
  get kept(): GivenFile[] {
    return [...this.#files.values()].flat();
  }

  takeText(name: string, text: string): void {
    this.#hold(text.length);
    if (this.#argument(name) === undefined) {
      this.textLength += text.length;
      listOf(this.#texts, name).push(text);
      return;
    }
    const file = fileFromDataUrl(text);
    if (typeof file === "string") {
      this.violations.push({ field: name, description: file });
    } else {
      listOf(this.#files, name).push(file);
    }
  }

  /** A file for an argument that takes none is its text: browsers send a value as a `Blob` so. */
  takeFile(name: string, facts: FileFacts, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const argument = this.#argument(name);
    return argument === undefined
      ? this.#takeTextOf(name, chunks)
      : this.#keepFile(name, { argument, facts: { ...facts, ...typeOf(facts, argument) }, chunks });
  }

  async #takeTextOf(name: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const list = listOf(this.#texts, name);
    // Values keep the order of their parts, however long each takes.
    const place = list.push("") - 1;
    const held: Uint8Array[] = [];
    for await (const chunk of chunks) {
      this.#hold(chunk.length);
      held.push(chunk);
    }
    const bytes = Buffer.concat(held);
    list[place] = bytes.toString();
    this.textLength += bytes.length;
    if (!isUtf8(bytes)) {
      const description = "is a file, but this argument takes none: send its text, in UTF-8";
      this.violations.push({ field: name, description });
    }
  }

  async #keepFile(
    name: string,
    {
      argument,
      facts,
      chunks,
    }: {
      readonly argument: FileArgument;
      readonly facts: FileFacts;
      readonly chunks: AsyncIterable<Uint8Array>;
    },
  ): Promise<void> {
    const list = listOf(this.#files, name);
    // Files keep the order of their parts, however long each takes.
    const place = list.push({ ...facts, data: NO_BYTES }) - 1;
    const wanted = place < maxFiles(argument);
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

  #argument(name: string): FileArgument | undefined {
    const { files } = this.#endpoint;
    return Object.hasOwn(files, name) ? files[name] : undefined;
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

/**
 * A part that says nothing of its type is `text/plain` (RFC 7578, section 4.4), which is no news
 * where no text is taken, unless its name says so too.
 */
function typeOf({ contentType, filename = "" }: FileFacts, { contentType: range }: FileArgument) {
  const isUntold =
    contentType === "text/plain" &&
    !/\.(?:txt|text)$/i.test(filename) &&
    typeTaken(range, contentType) === undefined;
  return { contentType: isUntold ? UNKNOWN_TYPE : contentType };
}

const NO_BYTES = new Uint8Array(0);

/** https://html.spec.whatwg.org/#constructing-entry-list: an empty file without a name. */
function isUnchosen(file: GivenFile): boolean {
  return (
    "data" in file &&
    file.data.byteLength === 0 &&
    file.filename === undefined &&
    file.contentType === UNKNOWN_TYPE
  );
}

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

function listOf<Item>(lists: Map<string, Item[]>, name: string): Item[] {
  const list = lists.get(name) ?? [];
  lists.set(name, list);
  return list;
}
