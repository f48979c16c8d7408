/**
 * The bounds of messages that the library decodes: gRPC, gRPC-Web, binary Connect,
 * Connect streams and Connect GET. Messages are looked at before they are decoded,
 * because a decoder makes objects of many times their size, and passed on unchanged.
 */
import type { DescField, DescMessage } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { encodeEnvelope, transformSplitEnvelope } from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import type { FastifyRequest } from "fastify";
import { faultOfJson } from "../../../collections/json-scan.ts";
import { problem } from "../../../errors.ts";
import { maxValuesOf } from "../../http/large-json.ts";

/** A JSON value in binary form has at most this many fields: entry, key, value and its kind. */
const MAX_FIELDS_PER_VALUE = 4;

/** Binary messages up to this size have too few fields to take long. */
const MAX_UNSCANNED_BYTES = 65_536;

/** Flag of an envelope whose message is compressed. */
const COMPRESSED = 0b1;

export interface ScanOptions {
  /** The message that is read. */
  readonly input: DescMessage;
  readonly readMaxBytes: number;
}

/** Passes on the body of a request, unless a message in it is beyond the bounds. Throws BODY_MALFORMED. */
export async function* scannedBody(
  { headers }: FastifyRequest,
  chunks: AsyncIterable<Uint8Array>,
  { input, readMaxBytes }: ScanOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const type = headers["content-type"] ?? "";
  const format: Format = { input, readMaxBytes, isJson: /[+/]json\b/i.test(type) };
  if (!/^application\/(?:grpc|connect)/i.test(type)) {
    const body = await whole(readMaxBytes, chunks);
    await check(body, headers["content-encoding"], format);
    yield body;
    return;
  }
  const encoding = headers["grpc-encoding"] ?? headers["connect-content-encoding"];
  for await (const { flags, data } of transformSplitEnvelope(readMaxBytes)(chunks)) {
    await check(data, (flags & COMPRESSED) === 0 ? undefined : String(encoding), format);
    yield encodeEnvelope(flags, data);
  }
}

/** Looks at the message in the query of a Connect GET. Rejects with BODY_MALFORMED. */
export async function scanQuery(
  { url }: Pick<FastifyRequest, "url">,
  options: ScanOptions,
): Promise<void> {
  const query = new URLSearchParams(url.split("?", 2)[1]);
  const message = query.get("message") ?? "";
  const data = Buffer.from(message, query.get("base64") === "1" ? "base64url" : "utf8");
  const isJson = query.get("encoding") !== "proto";
  await check(data, query.get("compression") ?? undefined, { ...options, isJson });
}

interface Format extends ScanOptions {
  readonly isJson: boolean;
}

async function check(
  data: Uint8Array,
  encoding: string | undefined,
  { input, readMaxBytes, isJson }: Format,
): Promise<void> {
  const plain = encoding === "gzip" ? await unzipped(data, readMaxBytes) : data;
  const maxValues = maxValuesOf(input);
  const fault = isJson
    ? faultOfJson(plain, undefined, maxValues)
    : faultOfBinary(plain, input, maxValues);
  if (fault !== undefined) {
    throw problem("BODY_MALFORMED", `the message ${fault}`);
  }
}

/** The library answers what is too large or no gzip. */
async function unzipped(data: Uint8Array, readMaxBytes: number): Promise<Uint8Array> {
  try {
    return await compressionGzip.decompress(data, readMaxBytes);
  } catch {
    return new Uint8Array(0);
  }
}

function faultOfBinary(
  data: Uint8Array,
  input: DescMessage,
  maxValues: number,
): string | undefined {
  if (data.length <= MAX_UNSCANNED_BYTES) {
    return undefined;
  }
  const room = { fields: maxValues * MAX_FIELDS_PER_VALUE };
  try {
    countFields(new BinaryReader(data), data.length, { message: input, room });
  } catch {
    // It is no message: the decoder says why.
  }
  return room.fields < 0
    ? `holds more than ${maxValues} values: send less, or send the arguments as a body of JSON`
    : undefined;
}

interface Counting {
  /** Undefined for the entry of a map. */
  readonly message: DescMessage | undefined;
  /** The map whose entry it is. */
  readonly map?: DescField;
  readonly room: { fields: number };
}

/** Takes every field of a message from the room, until there is none left. */
function countFields(reader: BinaryReader, end: number, counting: Counting): void {
  const { message, map, room } = counting;
  while (reader.pos < end && room.fields >= 0) {
    room.fields--;
    const [number, wireType] = reader.tag();
    const field = map ?? message?.fields.find((it) => it.number === number);
    const isEntry = map === undefined && field?.fieldKind === "map";
    const inner = map !== undefined && number !== 2 ? undefined : field?.message;
    if (wireType !== WireType.LengthDelimited || (inner === undefined && !isEntry)) {
      reader.skip(wireType, number);
      continue;
    }
    const innerEnd = reader.uint32() + reader.pos;
    const within = isEntry ? { message: undefined, map: field, room } : { message: inner, room };
    countFields(reader, innerEnd, within);
    if (room.fields >= 0) {
      reader.pos = innerEnd;
    }
  }
}

/** The body, or so much of it that the library refuses it for its size. */
async function whole(maxBytes: number, chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    size += chunk.length;
    if (size > maxBytes) {
      break;
    }
  }
  return Buffer.concat(parts);
}
