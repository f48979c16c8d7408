/**
 * Source: what lies in a bucket of S3, `s3://BUCKET/PREFIX`: one object, or all that are below it as
 * below a folder. The platform reads it with its own rights, so an organization reads only what the
 * operator has granted it.
 *
 * Objects have no commit. The source is pinned to the digest of its list of keys, sizes and entity
 * tags, `s3://BUCKET/PREFIX#list=DIGEST`: where the list is another one later, it is refused, and an
 * object is read under the tag that it was listed with.
 */
import { createHash } from "node:crypto";
import { MAX_MODEL_FILES } from "../../artifacts/model-index.ts";
import {
  invalidSource,
  type ModelSource,
  nameFrom,
  type PinOptions,
  type SourceContent,
  type SourceFile,
  sourceRefused,
} from "./source.ts";

const SOURCE =
  /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/([^#?\s]*?))?\/?(?:#list=([0-9a-f]{64}))?$/;

/** What the operator lets an organization read. */
export interface BucketGrant {
  /** The organization's name; `*` is all. */
  readonly organization: string;
  readonly bucket: string;
  /** The object, or the folder of objects, without a slash at its end; empty: the whole bucket. */
  readonly prefix: string;
}

export interface BucketObject {
  readonly key: string;
  /** In bytes. */
  readonly size: number;
  readonly etag: string;
}

/** The port to a server of buckets. Both reject with SOURCE_REFUSED or SOURCE_UNAVAILABLE. */
export interface BucketReader {
  /** Lists the objects whose keys begin with a prefix, by key. */
  list(bucket: string, prefix: string, signal: AbortSignal): AsyncIterable<BucketObject>;
  /** Opens an object at a place, if it still has its entity tag. */
  open(
    object: BucketObject & { readonly bucket: string },
    start: number,
    signal: AbortSignal,
  ): Promise<SourceContent>;
}

interface BucketSourceOptions {
  readonly grants: readonly BucketGrant[];
  /** Undefined where nothing is granted. */
  readonly reader: BucketReader | undefined;
}

export function bucketSource({ grants, reader }: BucketSourceOptions): ModelSource {
  return {
    takes: (source) => /^s3:\/\//i.test(source),
    async pin(source, options) {
      const [, bucket, prefix = "", wanted] = SOURCE.exec(source) ?? [];
      // S3 takes a key by its letters, but what is between here and there may resolve the dots.
      const isOdd = prefix !== "" && prefix.split("/").some((part) => /^\.{0,2}$/.test(part));
      if (bucket === undefined || isOdd) {
        throw invalidSource("is not s3://BUCKET/PREFIX");
      }
      const { organization, signal } = options;
      const isGranted = grants.some((grant) => covers(grant, { organization, bucket, prefix }));
      if (reader === undefined || !isGranted) {
        throw sourceRefused(
          `the operator of this platform does not let organization ${organization} read s3://${bucket}/${prefix} (tessera start --model-buckets ${organization}=s3://${bucket}/${prefix})`,
        );
      }
      const objects = await objectsOf(reader, { bucket, prefix, signal });
      const list = digestOf(objects.map(({ key, size, etag }) => [key, size, etag]));
      if (wanted !== undefined && wanted !== list) {
        throw sourceRefused(
          `s3://${bucket}/${prefix} is not what it was when it was pinned: objects were added, changed or removed. Import it again`,
        );
      }
      // A file is below its folder; an object by itself has the last part of its key for a name.
      const isObject = objects.length === 1 && objects[0]?.key === prefix;
      const base = isObject ? prefix.lastIndexOf("/") + 1 : folderOf(prefix).length;
      const byPath = new Map(objects.map((object) => [object.key.slice(base), object]));
      return {
        pinned: `s3://${bucket}/${prefix}#list=${list}`,
        name: nameFrom(
          (prefix.split("/").at(-1) || bucket).replace(isObject ? /\.[^.]*$/ : "", ""),
        ),
        ...{ repository: "", commit: "" },
        files: [...byPath].map(
          ([path, { key, size, etag }]): SourceFile => ({
            ...{ path, size },
            proof: { kind: "etag", digest: digestOf([bucket, key, etag]) },
          }),
        ),
        async open({ path }, start, signal) {
          const object = byPath.get(path);
          if (object === undefined) {
            throw new Error(`${path} is not of this source`);
          }
          return await reader.open({ ...object, bucket }, start, signal);
        },
      };
    },
  };
}

/** Whether a grant is for this organization, and for all below a prefix. */
function covers(
  grant: BucketGrant,
  asked: Pick<PinOptions, "organization"> & Omit<BucketGrant, "organization">,
): boolean {
  return (
    (grant.organization === "*" || grant.organization === asked.organization) &&
    grant.bucket === asked.bucket &&
    (asked.prefix === grant.prefix || asked.prefix.startsWith(folderOf(grant.prefix)))
  );
}

function folderOf(prefix: string): string {
  return prefix === "" ? "" : `${prefix}/`;
}

interface Asked {
  readonly bucket: string;
  readonly prefix: string;
  readonly signal: AbortSignal;
}

/** What is below a prefix as below a folder, or the object of that key. */
async function objectsOf(
  reader: BucketReader,
  { bucket, prefix, signal }: Asked,
): Promise<BucketObject[]> {
  const found: BucketObject[] = [];
  for await (const object of reader.list(bucket, folderOf(prefix), signal)) {
    // Consoles of S3 mark a folder by an empty object with a slash at its end.
    if (!object.key.endsWith("/")) {
      found.push(object);
    }
    if (found.length > MAX_MODEL_FILES) {
      throw sourceRefused(`s3://${bucket}/${prefix} has more than ${MAX_MODEL_FILES} objects`);
    }
  }
  if (found.length > 0 || prefix === "") {
    return found;
  }
  for await (const object of reader.list(bucket, prefix, signal)) {
    // The key itself is the first of all that begin with it.
    return object.key === prefix ? [object] : [];
  }
  return [];
}

function digestOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}
