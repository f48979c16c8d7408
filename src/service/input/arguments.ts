/**
 * The reader of arguments: turns a request into the payload that is queued and
 * executed. It validates everything that JSON Schema can express, before anything is
 * stored. The service's own code (refinements, transformations) validates the rest
 * when the call runs.
 */
import type { JsonObject } from "@bufbuild/protobuf";
import { giveBack } from "../../collections/bytes.ts";
import { type FieldViolation, problem } from "../../errors.ts";
import type { EndpointManifest } from "../../protocol/manifest.ts";
import {
  type FileValue,
  jsonOf,
  MAX_INLINE_FILE_BYTES,
  type Payload,
} from "../../protocol/messages.ts";
import { type FileKeeper, once } from "../../storage/files/keeper.ts";
import { ARGUMENTS_TYPE } from "./arguments-type.ts";
import { refuseCharset } from "./charset.ts";
import type { GivenFile } from "./file.ts";
import { type FormOptions, FormTaker } from "./form.ts";
import { isFormType, isJsonType, isUnknownType, mediaTypeOf } from "./media-type.ts";
import { readForm } from "./multipart.ts";
import {
  bareBody,
  MAX_JSON_BYTES_IN_PLACE,
  ObjectReader,
  type ReadPayload,
} from "./object-reader.ts";
import type { ReaderThreads } from "./threads.ts";

const JSON_TYPE = "application/json";

/** The input of a call: values, or the body of an HTTP request. */
export type CallInput =
  | { readonly case: "arguments"; readonly value: JsonObject }
  | {
      readonly case: "body";
      readonly value: { readonly contentType: string; readonly data: Uint8Array };
    }
  | { readonly case: "stream"; readonly value: FormStream }
  | { readonly case: undefined; readonly value?: undefined };

/** A form that is read as it arrives, or a file. */
interface FormStream extends Omit<FormOptions, "keeper"> {
  readonly contentType: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Present for a file, whatever its type: the argument that it is, and the other ones. */
  readonly beside?: { readonly argument: string; readonly fields: JsonObject };
}

/** Reads the arguments of one endpoint. */
export class ArgumentsReader {
  readonly #endpoint: EndpointManifest;
  readonly #objects: ObjectReader;

  constructor(endpoint: EndpointManifest) {
    this.#endpoint = endpoint;
    this.#objects = new ObjectReader(endpoint);
  }

  /**
   * Compiles the schema of its arguments, which otherwise the first call does. Throws when
   * that fails or takes too long.
   */
  compile(): void {
    this.#objects.compile();
  }

  /**
   * Reads and validates arguments. The keeper keeps large files; the caller of this
   * function must attach or release them. Large JSON is read on one of the threads, or
   * on this one where there are none. Throws, or rejects where there are files or the JSON
   * is large, with ARGUMENTS_INVALID, BODY_MALFORMED, BODY_TOO_LARGE,
   * CONTENT_TYPE_UNSUPPORTED, SERVER_BUSY or STORAGE_UNAVAILABLE, and then has kept
   * nothing.
   */
  read(input: CallInput, keeper: FileKeeper, threads?: ReaderThreads): Payload | Promise<Payload> {
    if (input.case === "arguments") {
      return kept(this.#objects.readStruct(input.value), keeper);
    }
    if (input.case === "stream") {
      const { contentType, chunks, beside, ...limits } = input.value;
      if (beside) {
        return this.#fromFile(beside, keeper, { contentType, chunks });
      }
      return this.#fromForm(contentType, chunks, { ...limits, keeper, threads });
    }
    if (
      input.case === undefined ||
      (input.value.data.length === 0 && input.value.contentType === "")
    ) {
      return kept(this.#objects.readStruct({}), keeper);
    }
    const { contentType, data } = input.value;
    if (contentType === ARGUMENTS_TYPE) {
      return this.#fromJson(data, keeper, { isNamed: true, threads });
    }
    const bare = bareBody(this.#endpoint, input.value);
    if (bare !== undefined) {
      return this.#fromBare(bare, keeper, threads);
    }
    if (contentType !== JSON_TYPE) {
      const mediaType = mediaTypeOf(contentType);
      if (isFormType(mediaType)) {
        const limits = { keeper, threads, maxHeldBytes: data.byteLength };
        return this.#fromForm(contentType, once(data), limits);
      }
      if (mediaType !== JSON_TYPE && !isReadAsJson(mediaType, data)) {
        throw problem(
          "CONTENT_TYPE_UNSUPPORTED",
          `content type ${JSON.stringify(mediaType)} cannot be read: send application/json, or a form (multipart/form-data with files, or application/x-www-form-urlencoded)`,
        );
      }
      refuseCharset(contentType);
    }
    if (data.length === 0) {
      return kept(this.#objects.readStruct({}), keeper);
    }
    return this.#fromJson(data, keeper, { isNamed: false, threads });
  }

  /** What is wrong with arguments that were read for another revision; undefined when they fit. */
  faultOf(stored: Payload): FieldViolation | undefined {
    return this.#objects.faultOf(stored);
  }

  #fromJson(
    data: Uint8Array,
    keeper: FileKeeper,
    {
      isNamed,
      threads,
    }: { readonly isNamed: boolean; readonly threads: ReaderThreads | undefined },
  ): Payload | Promise<Payload> {
    return threads === undefined || data.length <= MAX_JSON_BYTES_IN_PLACE
      ? withArrays(this.#objects.read(data, isNamed), keeper)
      : threads
          .read(this.#endpoint, data, isNamed)
          .then((read) => withArrays(this.#endpoint.kind === "api" ? read : inText(read), keeper));
  }

  /** A body that is the value of one argument. */
  #fromBare(
    { name, value }: { readonly name: string; readonly value: string | FileValue },
    keeper: FileKeeper,
    threads: ReaderThreads | undefined,
  ): Payload | Promise<Payload> {
    if (typeof value !== "string") {
      const checked = this.#objects.readTexts(new Map(), []);
      return kept(this.#objects.withFiles(checked, new Map([[name, [value]]])), keeper);
    }
    const json = `{${JSON.stringify(name)}:${JSON.stringify(value)}}`;
    return this.#fromJson(Buffer.from(json), keeper, { isNamed: true, threads });
  }

  async #fromFile(
    { argument, fields }: NonNullable<FormStream["beside"]>,
    keeper: FileKeeper,
    { contentType, chunks }: Pick<FormStream, "contentType" | "chunks">,
  ): Promise<Payload> {
    const checked = this.#objects.readFields(fields);
    const file = await keeper.keep({ contentType }, chunks);
    try {
      return this.#objects.withFiles(checked, new Map([[argument, [file]]]));
    } catch (err) {
      await keeper.release({ json: "", files: [file] });
      throw err;
    }
  }

  async #fromForm(
    contentType: string,
    chunks: AsyncIterable<Uint8Array>,
    options: FormOptions & { readonly threads: ReaderThreads | undefined },
  ): Promise<Payload> {
    const taker = new FormTaker(this.#endpoint, options);
    const { keeper, maxHeldBytes, threads } = options;
    try {
      await readForm(contentType, chunks, { taker, maxTextBytes: maxHeldBytes });
      const { texts, violations, textLength } = taker;
      const checked =
        threads === undefined || textLength <= MAX_JSON_BYTES_IN_PLACE
          ? this.#objects.readTexts(texts, violations)
          : await threads.readTexts(this.#endpoint, { texts, violations });
      return await keepLarge(this.#objects.withFiles(checked, taker.chosen()), keeper);
    } catch (err) {
      await keeper.release({ json: "", files: taker.kept });
      throw err;
    }
  }
}

/**
 * Whether a body is taken for JSON. Many programs call it text, or nothing at all; of a body with
 * another name, such as a picture, its beginning decides.
 */
function isReadAsJson(mediaType: string, data: Uint8Array): boolean {
  return (
    isJsonType(mediaType) ||
    isUnknownType(mediaType) ||
    mediaType === "text/plain" ||
    /^\s*[[{]/.test(Buffer.from(data.subarray(0, MAX_BEGINNING_BYTES)).toString("latin1"))
  );
}

/** The payload of a task, whose JSON is stored as text. */
function inText(read: ReadPayload): ReadPayload {
  const { files, jsonBytes } = read;
  const json = jsonOf(read);
  if (jsonBytes) {
    giveBack(jsonBytes);
  }
  return { json, files };
}

/** Bytes that are looked at for the beginning of JSON. */
const MAX_BEGINNING_BYTES = 64;

/** The payload, once its large files are kept. Arrays stay in memory, as the JSON does that they came in. */
function withArrays(
  { arrays = [], ...payload }: ReadPayload,
  keeper: FileKeeper,
): Payload | Promise<Payload> {
  const done = kept(payload, keeper);
  if (arrays.length === 0) {
    return done;
  }
  return "files" in done
    ? { ...done, files: [...done.files, ...arrays] }
    : done.then((taken) => ({ ...taken, files: [...taken.files, ...arrays] }));
}

/** The payload, once its large files are kept. */
function kept(payload: Payload, keeper: FileKeeper): Payload | Promise<Payload> {
  return payload.files.length === 0 ? payload : keepLarge(payload, keeper);
}

/** Moves large files that came as text, and so are in memory, to the keeper. */
async function keepLarge(payload: Payload, keeper: FileKeeper): Promise<Payload> {
  const files: GivenFile[] = [];
  try {
    for (const file of payload.files) {
      const large = "data" in file && file.data.byteLength > MAX_INLINE_FILE_BYTES;
      files.push(large ? await keepData(file, keeper) : file);
    }
    return { ...payload, files };
  } catch (err) {
    await keeper.release({ json: "", files });
    throw err;
  }
}

function keepData({ data, ...facts }: FileValue, keeper: FileKeeper): Promise<GivenFile> {
  return keeper.keep(facts, once(data));
}
