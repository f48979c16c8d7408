import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { type BlobsConfig, blobsConfig } from "../../src/config/blobs.ts";

const S3 = { kind: "s3", endpoint: undefined, region: "us-east-1" };

describe("where large files are kept", () => {
  it.each<[string | undefined, string, Partial<BlobsConfig>]>([
    [undefined, ":memory:", { kind: "temporary" }],
    [undefined, "./tasks.db", { kind: "folder", folder: `${resolve("tasks.db")}-blobs` }],
    [undefined, "postgres://u:p@h/d", { kind: "postgres" }],
    ["./files", "postgres://u:p@h/d", { kind: "folder", folder: resolve("files") }],
    ["s3://some-bucket", ":memory:", { ...S3, bucket: "some-bucket", prefix: "" } as BlobsConfig],
    ["s3://b.1/", "./t.db", { ...S3, bucket: "b.1", prefix: "" } as BlobsConfig],
    ["s3://b-1/a/b", "./t.db", { ...S3, bucket: "b-1", prefix: "a/b/" } as BlobsConfig],
  ])("--blobs %s with the database %s", (text, database, expected) => {
    expect(blobsConfig(text, database, {})).toEqual(expected);
  });

  it("takes the region and the server of a bucket from the environment", () => {
    const env = { AWS_REGION: "eu-west-1", TESSERA_S3_ENDPOINT: "http://localhost:9000" };
    expect(blobsConfig("s3://bucket", ":memory:", env)).toMatchObject({
      region: "eu-west-1",
      endpoint: "http://localhost:9000",
    });
  });

  it.each(["", "gs://bucket", "s3://", "s3://UPPER", "s3://b", "s3://bucket/a b", "s3://bucket?x"])(
    "refuses %j, and says what would do",
    (text) => {
      expect(() => blobsConfig(text, ":memory:", {})).toThrow(
        "--blobs takes a folder, such as ./files, or a bucket, s3://bucket/prefix",
      );
    },
  );

  it("refuses a server that is no address", () => {
    const env = { TESSERA_S3_ENDPOINT: "localhost:9000" };
    expect(() => blobsConfig("s3://bucket", ":memory:", env)).toThrow(
      "TESSERA_S3_ENDPOINT must be an address such as https://s3.example.com",
    );
  });
});
