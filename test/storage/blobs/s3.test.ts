import { expect, it } from "vitest";
import { S3BlobStore } from "../../../src/storage/blobs/s3.ts";
import { TestBucket } from "./bucket.ts";
import { blobsContract } from "./contract.ts";

blobsContract("a bucket", async () => {
  const bucket = await TestBucket.start();
  const store = new S3BlobStore(bucket.options());
  await store.start();
  return {
    store,
    count: () => bucket.count(),
    async breakDown() {
      await bucket.stop();
      return () => bucket.startAgain();
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]();
      await bucket[Symbol.asyncDispose]();
    },
  };
});

it("a bucket that is not there is refused with a message that says what to do", async () => {
  await using bucket = await TestBucket.start();
  await using missing = new S3BlobStore(bucket.options({ bucket: "no-such-bucket" }));
  await expect(missing.start()).rejects.toThrow(
    "cannot use the bucket no-such-bucket: it does not exist; create it, or name another",
  );
  await using away = new S3BlobStore(bucket.options({ endpoint: "http://127.0.0.1:1" }));
  await expect(away.start()).rejects.toThrow(/127.0.0.1:1 does not answer .*TESSERA_S3_ENDPOINT/);
});
