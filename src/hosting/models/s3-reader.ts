/** Reads buckets of Amazon S3 or a compatible server, with the credentials of this process. */
import type { Readable } from "node:stream";
import {
  GetObjectCommand,
  ListObjectsV2Command,
  type S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { Problem } from "../../errors.ts";
import { newS3Client, type S3Server } from "../../storage/s3-client.ts";
import type { BucketObject, BucketReader } from "./bucket.ts";
import { type SourceContent, sourceRefused, sourceUnavailable } from "./source.ts";

export class S3Reader implements BucketReader, Disposable {
  readonly #client: S3Client;

  constructor(server: S3Server) {
    this.#client = newS3Client(server);
  }

  async *list(bucket: string, prefix: string, signal: AbortSignal): AsyncGenerator<BucketObject> {
    let token: string | undefined;
    do {
      const page = await this.#client
        .send(
          new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix, ContinuationToken: token }),
          { abortSignal: signal },
        )
        .catch((err: unknown) => {
          signal.throwIfAborted();
          throw reasonOf(err, `s3://${bucket}/${prefix}`);
        });
      for (const { Key: key = "", Size: size = -1, ETag: etag = "" } of page.Contents ?? []) {
        if (key === "" || size < 0 || etag === "") {
          throw sourceRefused(`the list of s3://${bucket} has an entry that is no object`);
        }
        yield { key, size, etag };
      }
      token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
    } while (token !== undefined);
  }

  async open(
    { bucket, key, size, etag }: BucketObject & { readonly bucket: string },
    start: number,
    signal: AbortSignal,
  ): Promise<SourceContent> {
    const place = `s3://${bucket}/${key}`;
    if (size === start) {
      return { start, etag, size, chunks: nothing() };
    }
    try {
      const answer = await this.#client.send(
        new GetObjectCommand({
          ...{ Bucket: bucket, Key: key, IfMatch: etag },
          ...(start > 0 && { Range: `bytes=${start}-` }),
        }),
        { abortSignal: signal },
      );
      const body = answer.Body as Readable;
      // Not every server knows conditions.
      if (answer.ETag !== etag) {
        body.destroy();
        throw changed(place);
      }
      return { start, etag, size: undefined, chunks: read(body) };
    } catch (err) {
      signal.throwIfAborted();
      throw reasonOf(err, place);
    }
  }

  [Symbol.dispose](): void {
    this.#client.destroy();
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function* read(body: Readable): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* body as AsyncIterable<Buffer>;
  } catch (err) {
    throw sourceUnavailable("the connection to S3 broke", err);
  } finally {
    body.destroy();
  }
}

function changed(place: string): Error {
  return sourceRefused(`${place} was changed after it was pinned: import it again`);
}

/** What people are told: what the server says may name its accounts. */
function reasonOf(err: unknown, place: string): unknown {
  if (err instanceof Problem) {
    return err;
  }
  if (!(err instanceof S3ServiceException)) {
    return err instanceof Error && err.name === "CredentialsProviderError"
      ? sourceRefused("the platform has no credentials for S3: its operator can give it some", err)
      : sourceUnavailable("S3 does not answer", err);
  }
  const { httpStatusCode: status = 0 } = err.$metadata;
  switch (status) {
    case 401:
    case 403:
      return sourceRefused(
        err.name === "InvalidObjectState"
          ? `${place} is archived: restore it there first`
          : `the platform's credentials may not read ${place}: its operator can allow them to`,
        err,
      );
    case 404:
      return sourceRefused(`${place} does not exist`, err);
    case 412:
      return changed(place);
    case 301:
    case 400:
      return sourceRefused(
        `${place} cannot be read: is its bucket in the region that the platform reads from (AWS_REGION)?`,
        err,
      );
    default:
      return sourceUnavailable(`S3 answers ${status} for ${place}`, err);
  }
}
