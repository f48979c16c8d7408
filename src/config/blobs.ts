/** The location of large files: beside the database, unless `--blobs` names another. */
import { resolve } from "node:path";
import { ConfigError, isPostgres } from "./values.ts";

export type BlobsConfig =
  /** In a temporary folder, because the database is in memory. */
  | { readonly kind: "temporary" }
  | { readonly kind: "folder"; readonly folder: string }
  /** In the Postgres database itself, which is all that nodes share. */
  | { readonly kind: "postgres" }
  | {
      readonly kind: "s3";
      readonly bucket: string;
      /** Empty, or with a trailing slash. */
      readonly prefix: string;
      /** Undefined: Amazon's own. */
      readonly endpoint: string | undefined;
      readonly region: string;
    };

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
    endpoint: endpoint(env.TESSERA_S3_ENDPOINT || undefined),
    // Most servers other than Amazon's accept any region.
    region: env.AWS_REGION || env.AWS_DEFAULT_REGION || "us-east-1",
  };
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
