/** The client of Amazon S3 or a compatible server, as everybody here uses it. */
import { S3Client } from "@aws-sdk/client-s3";

/** How long a connection to S3 may take to open. */
const S3_CONNECT_TIMEOUT_MS = 5_000;
/** How long a connection to S3 may carry no byte in either direction. */
const S3_SILENCE_TIMEOUT_MS = 20_000;

export interface S3Server {
  /**
   * Default: Amazon's. For any other, the bucket name goes into the path, as
   * nearly all of them expect.
   */
  readonly endpoint: string | undefined;
  /** The bucket's region; most other servers accept any. */
  readonly region: string;
}

/** Credentials come from the usual AWS sources: variables, profiles, the machine's role. */
export function newS3Client({ region, endpoint }: S3Server): S3Client {
  return new S3Client({
    region,
    ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
    maxAttempts: 3,
    // Not every server understands checksums that the protocol does not require.
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    requestHandler: {
      connectionTimeout: S3_CONNECT_TIMEOUT_MS,
      socketTimeout: S3_SILENCE_TIMEOUT_MS,
      throwOnRequestTimeout: true,
    },
  });
}
