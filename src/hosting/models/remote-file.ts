/** A file on a web server, opened at a place: by `Range` where the server knows it. */
import type { IncomingMessage } from "node:http";
import type { EgressPolicy } from "../../pool/egress/policy.ts";
import { get } from "./http-get.ts";
import { type SourceContent, sourceRefused, sourceUnavailable } from "./source.ts";

interface RemoteFileOptions {
  readonly policy: EgressPolicy;
  readonly token: string;
  readonly signal: AbortSignal;
}

/** Opens a file. Rejects with SOURCE_REFUSED or SOURCE_UNAVAILABLE. */
export async function openRemote(
  url: URL,
  start: number,
  options: RemoteFileOptions,
): Promise<SourceContent> {
  const answer = await get(url, {
    ...options,
    // Compressed bytes would be others than those that were announced.
    headers: { "accept-encoding": "identity", ...(start > 0 && { range: `bytes=${start}-` }) },
  });
  const { statusCode = 0, headers } = answer;
  const etag = headers.etag?.replace(/^W\//, "");
  if (statusCode === 206) {
    const [, first, total] =
      /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers["content-range"] ?? "") ?? [];
    if (Number(first) !== start) {
      answer.destroy();
      throw sourceRefused(`${url.host} answers with another range than it was asked for`);
    }
    return { start, etag, size: total === "*" ? undefined : Number(total), chunks: read(answer) };
  }
  if (statusCode === 200) {
    const length = headers["content-length"];
    const size = length === undefined ? undefined : Number(length);
    return { start: 0, etag, size, chunks: read(answer) };
  }
  answer.destroy();
  throw refusal(answer, url);
}

/** The error for an answer without success. */
export function refusal({ statusCode = 0 }: IncomingMessage, url: URL): Error {
  const message = `${url.host} answers ${statusCode} for ${url.pathname}`;
  return statusCode === 429 || statusCode >= 500
    ? sourceUnavailable(message)
    : sourceRefused(message);
}

async function* read(answer: IncomingMessage): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* answer as AsyncIterable<Buffer>;
  } catch (err) {
    throw sourceUnavailable("the connection to the source broke", err);
  } finally {
    answer.destroy();
  }
}
