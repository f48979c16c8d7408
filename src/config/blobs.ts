/**
 * Places in S3, and the location of large files: beside the database, unless `--blobs` names
 * another.
 */
import { resolve } from "node:path";
import type { BucketGrant } from "../hosting/models/bucket.ts";
import { ConfigError, isPostgres, type Parse } from "./values.ts";

/** Where S3 is, and in which region. */
export interface S3Config {
  /** Undefined: Amazon's own. */
  readonly endpoint: string | undefined;
  readonly region: string;
}

export type BlobsConfig =
  /** In a temporary folder, because the database is in memory. */
  | { readonly kind: "temporary" }
  | { readonly kind: "folder"; readonly folder: string }
  /** In the Postgres database itself, which is all that nodes share. */
  | { readonly kind: "postgres" }
  | (S3Config & {
      readonly kind: "s3";
      readonly bucket: string;
      /** Empty, or with a trailing slash. */
      readonly prefix: string;
    });

/** Reads `--blobs`; S3 credentials come from where the AWS tools keep them. Throws a `ConfigError`. */
export function blobsConfig(
  text: string | undefined,
  database: string,
  env: NodeJS.ProcessEnv,
): BlobsConfig {
  if (text === undefined) {
    return beside(database);
  }
  const [, scheme, rest = ""] = /^([a-z][a-z0-9+.-]+):\/\/(.*)$/i.exec(text) ?? [];
  if (scheme === undefined && text !== "") {
    return { kind: "folder", folder: resolve(text) };
  }
  const [, bucket, path = ""] = /^([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(rest) ?? [];
  if (scheme?.toLowerCase() !== "s3" || bucket === undefined || /[^\w/.-]/.test(path)) {
    throw new ConfigError(
      `--blobs takes a folder, such as ./files, or a bucket, s3://bucket/prefix; ${JSON.stringify(text)} is neither`,
    );
  }
  const prefix = path.replace(/\/*$/, "/");
  return {
    kind: "s3",
    bucket,
    prefix: prefix === "/" ? "" : prefix,
    ...s3Config(env),
  };
}

/** Reads which S3 is meant. Throws a `ConfigError`. */
export function s3Config(env: NodeJS.ProcessEnv): S3Config {
  return {
    endpoint: endpoint(env.TESSERA_S3_ENDPOINT || undefined),
    // Most servers other than Amazon's accept any region.
    region: env.AWS_REGION || env.AWS_DEFAULT_REGION || "us-east-1",
  };
}

const GRANT =
  /^(\*|[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)=s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:\/[\w.-]+)*)\/?$/;

/** Which organizations read which places of S3, such as `acme=s3://weights/acme,*=s3://shared`. */
export const bucketGrants: Parse<readonly BucketGrant[]> = (text, name) =>
  text
    .split(",")
    .map((entry) => entry.trim())
    .filter((entry) => entry !== "")
    .map((entry) => {
      const [, organization, bucket, path = ""] = GRANT.exec(entry) ?? [];
      if (organization === undefined || bucket === undefined || /\/\.{1,2}(?:\/|$)/.test(path)) {
        throw new ConfigError(
          `${name} must be places of S3 with the organization that may read them, such as acme=s3://weights/acme,*=s3://shared; ${JSON.stringify(entry)} is not one`,
        );
      }
      return { organization, bucket, prefix: path.slice(1) };
    });

/** Throws a `ConfigError` for a grant that reaches what the platform itself stores of everybody. */
export function checkGrants(grants: readonly BucketGrant[], blobs: BlobsConfig): void {
  if (blobs.kind !== "s3") {
    return;
  }
  const own = blobs.prefix;
  for (const { organization, bucket, prefix } of grants) {
    const granted = prefix === "" ? "" : `${prefix}/`;
    if (bucket === blobs.bucket && (own.startsWith(granted) || granted.startsWith(own))) {
      throw new ConfigError(
        `--model-buckets lets ${organization} read s3://${bucket}/${prefix}, where the platform keeps the files of all organizations (--blobs s3://${bucket}/${own}): grant another place`,
      );
    }
  }
}

function beside(database: string): BlobsConfig {
  if (database === ":memory:") {
    return { kind: "temporary" };
  }
  return isPostgres(database)
    ? { kind: "postgres" }
    : { kind: "folder", folder: `${resolve(database)}-blobs` };
}

function endpoint(text: string | undefined): string | undefined {
  if (text !== undefined && !(URL.canParse(text) && /^https?:$/.test(new URL(text).protocol))) {
    throw new ConfigError(
      `TESSERA_S3_ENDPOINT must be an address such as https://s3.example.com, not ${JSON.stringify(text)}`,
    );
  }
  return text;
}
