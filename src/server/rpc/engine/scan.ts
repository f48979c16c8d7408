/**
 * The bounds of messages that the library decodes: gRPC, gRPC-Web, binary Connect,
 * Connect streams and Connect GET. Messages are looked at before they are decoded,
 * because a decoder makes objects of many times their size. Large ones pass on with
 * their arguments as a body, all others as they came, unpacked.
 */
import { type DescMessage, fromBinary, type Message } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type EnvelopedMessage,
  encodeEnvelope,
  transformSplitEnvelope,
} from "@connectrpc/connect/protocol";
import { compressionGzip } from "@connectrpc/connect-node";
import type { FastifyRequest } from "fastify";
import { readAtMost } from "../../../collections/bytes.ts";
import { faultOfJson } from "../../../collections/json-bounds.ts";
import { problem } from "../../../errors.ts";
import { faultOfBinary } from "../../../service/input/binary-scan.ts";
import { bodyTooLarge } from "../../http/body.ts";
import { maxValuesOf } from "../../http/large-json.ts";

/** Flag of an envelope whose message is compressed. */
export const COMPRESSED = 0b1;

/** A message as it is encoded. */
interface EncodedMessage {
  readonly data: Uint8Array;
  readonly input: DescMessage;
  readonly isJson: boolean;
}

/**
 * Encodes a large message anew, with its arguments as a body; undefined where it can be decoded
 * as it is. Rejects with BODY_MALFORMED or SERVER_BUSY.
 */
export type RewriteLarge = (
  message: EncodedMessage,
) => Uint8Array | Promise<Uint8Array> | undefined;

export interface ScanOptions {
  /** The message that is read. */
  readonly input: DescMessage;
  readonly readMaxBytes: number;
  /** Default: no message is large. */
  readonly rewriteLarge: RewriteLarge | undefined;
}

/** Whether the body is one message, and not one envelope after the other. */
export function isWhole({ headers }: Pick<FastifyRequest, "headers">): boolean {
  return !/^application\/(?:grpc|connect)/i.test(headers["content-type"] ?? "");
}

/**
 * Passes on the messages of a body, unpacked. Throws BODY_MALFORMED for one that is beyond the
 * bounds, and SERVER_BUSY.
 */
export async function* scannedBody(
  { headers }: Pick<FastifyRequest, "headers">,
  chunks: AsyncIterable<Uint8Array>,
  options: ScanOptions,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { readMaxBytes } = options;
  const isJson = /[+/]json\b/i.test(headers["content-type"] ?? "");
  if (isWhole({ headers })) {
    const body = await readAtMost(chunks, readMaxBytes);
    if (body === undefined) {
      throw bodyTooLarge(readMaxBytes);
    }
    yield await scanned(
      await unpacked(body, headers["content-encoding"], options),
      isJson,
      options,
    );
    return;
  }
  const encoding = headers["grpc-encoding"] ?? headers["connect-content-encoding"];
  for await (const { flags, data } of envelopes(readMaxBytes, chunks)) {
    const plain = await unpackedEnvelope({ flags, data }, encoding, options);
    yield encodeEnvelope(flags & ~COMPRESSED, await scanned(plain, isJson, options));
  }
}

/** The message of an envelope, unpacked. Rejects with BODY_MALFORMED and BODY_TOO_LARGE. */
export function unpackedEnvelope(
  { flags, data }: EnvelopedMessage,
  encoding: string | string[] | undefined,
  options: ScanOptions,
): Uint8Array | Promise<Uint8Array> {
  if ((flags & COMPRESSED) === 0) {
    return data;
  }
  if (encoding !== "gzip") {
    const message = "the message is marked as compressed, and the headers do not say how";
    throw problem("BODY_MALFORMED", message);
  }
  return unpacked(data, encoding, options);
}

/** Decodes a message in binary form within the bounds. Rejects with BODY_MALFORMED and SERVER_BUSY. */
export async function decodedBinary(data: Uint8Array, options: ScanOptions): Promise<Message> {
  const { input, rewriteLarge } = options;
  const rewriting = rewriteLarge?.({ data, input, isJson: false });
  if (rewriting !== undefined) {
    return fromBinary(input, await rewriting);
  }
  const fault = faultOfBinary(data, input, maxValuesOf(input));
  if (fault !== undefined) {
    throw problem("BODY_MALFORMED", `the message ${fault}`);
  }
  try {
    return fromBinary(input, data);
  } catch (err) {
    throw problem("BODY_MALFORMED", `the message ${notRead(input, err)}`);
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
  const plain = await unpacked(data, query.get("compression") ?? undefined, options);
  check(plain, query.get("encoding") !== "proto", options);
}

/** Throws BODY_TOO_LARGE. */
async function* envelopes(
  readMaxBytes: number,
  chunks: AsyncIterable<Uint8Array>,
): AsyncGenerator<EnvelopedMessage, void, undefined> {
  try {
    yield* transformSplitEnvelope(readMaxBytes)(chunks);
  } catch (err) {
    throw isTooLarge(err) ? bodyTooLarge(readMaxBytes) : err;
  }
}

/** True for the library's error of a message beyond its limit. */
function isTooLarge(err: unknown): boolean {
  return err instanceof ConnectError && err.code === Code.ResourceExhausted;
}

/** Throws BODY_TOO_LARGE, and BODY_MALFORMED for what is not gzip. */
async function unpacked(
  data: Uint8Array,
  encoding: string | string[] | undefined,
  { readMaxBytes }: ScanOptions,
): Promise<Uint8Array> {
  if (encoding !== "gzip") {
    return data;
  }
  try {
    return await compressionGzip.decompress(data, readMaxBytes);
  } catch (err) {
    throw isTooLarge(err)
      ? bodyTooLarge(readMaxBytes)
      : problem("BODY_MALFORMED", "the message is not compressed with gzip, as its header says");
  }
}

function scanned(
  data: Uint8Array,
  isJson: boolean,
  options: ScanOptions,
): Uint8Array | Promise<Uint8Array> {
  const { input, rewriteLarge } = options;
  const rewriting = rewriteLarge?.({ data, input, isJson });
  if (rewriting !== undefined) {
    return rewriting;
  }
  check(data, isJson, options);
  return data;
}

function check(data: Uint8Array, isJson: boolean, { input }: ScanOptions): void {
  const maxValues = maxValuesOf(input);
  const fault = isJson
    ? faultOfJson(data, undefined, maxValues)
    : (faultOfBinary(data, input, maxValues) ?? unreadable(data, input));
  if (fault !== undefined) {
    throw problem("BODY_MALFORMED", `the message ${fault}`);
  }
}

/** Why the decoder cannot read the message; the library would blame the server for it. */
function unreadable(data: Uint8Array, input: DescMessage): string | undefined {
  try {
    fromBinary(input, data, { readUnknownFields: false });
    return undefined;
  } catch (err) {
    return notRead(input, err);
  }
}

function notRead({ typeName }: DescMessage, err: unknown): string {
  return `is no ${typeName}: ${err instanceof Error ? err.message : err}`;
}
