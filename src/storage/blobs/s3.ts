/**
 * Blobs as objects of a bucket, on Amazon S3 and whatever speaks its protocol.
 * An object appears when its upload is complete, so what can be read is whole.
 *
 * Small blobs are one request; larger ones go in parts, of which few are in
 * memory. A process that is killed leaves the parts of its upload in the
 * bucket, where they are no object: a lifecycle rule of the bucket that aborts
 * incomplete uploads removes them.
 */
import { Readable } from "node:stream";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  S3Client,
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

/** The smallest that S3 takes; 10,000 of them, the most that an object may have, make 50 GB. */
const PART_BYTES = 5 * 1024 * 1024;

/** Parts of one upload in memory and on their way. */
const PARTS_AT_A_TIME = 2;

/** Deletions on their way at a time. */
const DELETES_AT_A_TIME = 20;

const CONNECT_TIMEOUT_MS = 5_000;
/** Without a byte in either direction. */
const SILENCE_TIMEOUT_MS = 20_000;

export interface S3Options {
  readonly bucket: string;
  /** Before each id in the names of objects: empty, or with a slash at its end. */
  readonly prefix: string;
  /** Absent: Amazon's. With another, the bucket stands in the path, as nearly all of them want it. */
  readonly endpoint: string | undefined;
  /** Where the bucket is; most other servers take any. */
  readonly region: string;
}

export class S3BlobStore implements BlobStore {
  readonly #client: S3Client;
  readonly #options: S3Options;

  /** Credentials come from where the AWS tools have them: variables, profiles, the machine's role. */
  constructor(options: S3Options) {
    const { endpoint, region } = options;
    this.#options = options;
    this.#client = new S3Client({
      region,
      ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
      maxAttempts: 3,
      // Checksums that are not asked for are not understood by every server.
      requestChecksumCalculation: "WHEN_REQUIRED",
      responseChecksumValidation: "WHEN_REQUIRED",
      requestHandler: {
        connectionTimeout: CONNECT_TIMEOUT_MS,
        socketTimeout: SILENCE_TIMEOUT_MS,
        throwOnRequestTimeout: true,
      },
    });
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
      partSize: PART_BYTES,
      queueSize: PARTS_AT_A_TIME,
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
        // Some servers send more than was asked for.
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
      for (let from = 0; from < blobIds.length; from += DELETES_AT_A_TIME) {
        const some = blobIds.slice(from, from + DELETES_AT_A_TIME);
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
