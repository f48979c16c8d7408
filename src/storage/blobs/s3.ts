/**
 * The blob store on a bucket of Amazon S3 or a compatible server. An object
 * appears when its upload is complete, so blobs appear atomically.
 *
 * Small blobs take one request; larger ones are multipart uploads with few
 * parts in memory. A killed process leaves the parts of its upload in the
 * bucket; a lifecycle rule of the bucket that aborts incomplete uploads removes
 * them.
 */
import { Readable } from "node:stream";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  type S3Client,
  S3ServiceException,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import {
  BlobMissing,
  type BlobStore,
  type ByteRange,
  blobsUnavailable,
  checkBlobId,
  Source,
  WHOLE,
} from "../blobs.ts";
import { newS3Client, type S3Server } from "../s3-client.ts";

/**
 * Part of an upload to S3: the smallest that it takes; 10,000 of them, the most that an object
 * may have, make 50 GB.
 */
const S3_PART_BYTES = 5 * 1024 * 1024;

/** Parts of one upload to S3 in memory and on their way. */
const MAX_PARALLEL_PARTS = 2;

/** Deletions in S3 on their way at a time. */
const MAX_PARALLEL_DELETES = 20;

export interface S3Options extends S3Server {
  readonly bucket: string;
  /** Prefix of object names: empty, or ending with a slash. */
  readonly prefix: string;
}

export class S3BlobStore implements BlobStore {
  readonly #client: S3Client;
  readonly #options: S3Options;

  constructor(options: S3Options) {
    this.#options = options;
    this.#client = newS3Client(options);
  }

  async start(): Promise<void> {
    const { bucket, endpoint } = this.#options;
    try {
      await this.#client.send(new HeadBucketCommand({ Bucket: bucket }));
    } catch (err) {
      throw new Error(`cannot use the bucket ${bucket}: ${reasonOf(err, endpoint)}`, {
        cause: err,
      });
    }
  }

  async write(blobId: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const source = new Source(chunks);
    const upload = new Upload({
      client: this.#client,
      params: { ...this.#object(blobId), Body: Readable.from(source, { objectMode: false }) },
      partSize: S3_PART_BYTES,
      queueSize: MAX_PARALLEL_PARTS,
      leavePartsOnError: false,
    });
    try {
      await upload.done();
    } catch (err) {
      throw source.errorFor(err);
    }
  }

  async *read(blobId: string, { start, end }: ByteRange = WHOLE): AsyncGenerator<Uint8Array> {
    const size = end - start;
    if (size === 0) {
      return;
    }
    const whole = start === 0 && end === WHOLE.end;
    const last = end === WHOLE.end ? "" : String(end - 1);
    const range = whole ? {} : { Range: `bytes=${start}-${last}` };
    const body = await this.#get({ ...this.#object(blobId), ...range }, blobId);
    let read = 0;
    try {
      for await (const chunk of body as AsyncIterable<Buffer>) {
        // Some servers send more than requested.
        const wanted = chunk.subarray(0, size - read);
        read += wanted.length;
        yield wanted;
        if (read === size) {
          return;
        }
      }
    } catch (err) {
      throw blobsUnavailable(err);
    } finally {
      body.destroy();
    }
    if (read < size && end !== WHOLE.end) {
      throw new BlobMissing(blobId);
    }
  }

  async delete(blobIds: readonly string[]): Promise<void> {
    try {
      for (let from = 0; from < blobIds.length; from += MAX_PARALLEL_DELETES) {
        const some = blobIds.slice(from, from + MAX_PARALLEL_DELETES);
        await Promise.all(
          some.map((blobId) => this.#client.send(new DeleteObjectCommand(this.#object(blobId)))),
        );
      }
    } catch (err) {
      throw blobsUnavailable(err);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
  }

  #object(blobId: string): { Bucket: string; Key: string } {
    const { bucket, prefix } = this.#options;
    return { Bucket: bucket, Key: prefix + checkBlobId(blobId) };
  }

  async #get(
    request: ConstructorParameters<typeof GetObjectCommand>[0],
    blobId: string,
  ): Promise<Readable> {
    try {
      const { Body } = await this.#client.send(new GetObjectCommand(request));
      return Body as Readable;
    } catch (err) {
      const gone =
        err instanceof S3ServiceException &&
        ["NoSuchKey", "NotFound", "InvalidRange"].includes(err.name);
      throw gone ? new BlobMissing(blobId, { cause: err }) : blobsUnavailable(err);
    }
  }
}

function reasonOf(err: unknown, endpoint: string | undefined): string {
  const status = err instanceof S3ServiceException ? err.$metadata.httpStatusCode : undefined;
  if (status === 404) {
    return "it does not exist; create it, or name another with --blobs s3://bucket/prefix";
  }
  if (status === 403 || status === 401) {
    return "these credentials may not use it; check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
  }
  if (status === 301 || status === 400) {
    return "it is in another region; set AWS_REGION";
  }
  const message = err instanceof Error ? err.message || err.name : String(err);
  const where = endpoint ?? "Amazon S3";
  return `${where} does not answer (${message}); check TESSERA_S3_ENDPOINT and the network`;
}
