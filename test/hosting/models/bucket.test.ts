import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type BucketGrant, bucketSource } from "../../../src/hosting/models/bucket.ts";
import { S3Reader } from "../../../src/hosting/models/s3-reader.ts";
import { pinSource, type SourceContent } from "../../../src/hosting/models/source.ts";
import { TestBucket } from "../../storage/blobs/bucket.ts";
import { refusalOf } from "./refusal.ts";

const WEIGHTS = randomBytes(10_000);
const ALL: readonly BucketGrant[] = [{ organization: "*", bucket: "tessera-test", prefix: "" }];
const signal = new AbortController().signal;

let bucket: TestBucket;
let reader: S3Reader;

beforeAll(async () => {
  bucket = await TestBucket.start();
  reader = new S3Reader({ endpoint: bucket.endpoint, region: "us-east-1" });
  await bucket.put("acme/reader/model.safetensors", WEIGHTS);
  await bucket.put("acme/reader/sub/config.json", "{}");
  await bucket.put("acme/reader/empty", "");
  await bucket.put("acme/reader-2/other.bin", "other");
  await bucket.put("single.gguf", WEIGHTS);
});
afterAll(async () => {
  reader[Symbol.dispose]();
  await bucket[Symbol.asyncDispose]();
});

function pin(source: string, { grants = ALL, organization = "acme", by = reader } = {}) {
  return pinSource([bucketSource({ grants, reader: by })], source, {
    ...{ organization, token: "", signal },
  });
}

async function bytesOf({ chunks }: SourceContent): Promise<Buffer> {
  const read: Uint8Array[] = [];
  for await (const chunk of chunks) {
    read.push(chunk);
  }
  return Buffer.concat(read);
}

/** A server that gives these answers, and a reader of it. */
async function answering(answer: (url: URL) => [status: number, body: string]) {
  const server = createServer((req, res) => {
    const [status, body] = answer(new URL(req.url ?? "", "http://server"));
    res.writeHead(status, { "content-type": "application/xml" }).end(body);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const reader = new S3Reader({ endpoint: `http://127.0.0.1:${port}`, region: "us-east-1" });
  return {
    reader,
    async [Symbol.asyncDispose]() {
      reader[Symbol.dispose]();
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
}

/** A page of a list, with one object. */
function pageOf(name: string, next: string | undefined): string {
  const more = next === undefined ? "" : `<NextContinuationToken>${next}</NextContinuationToken>`;
  const object = `<Key>many/${name}</Key><Size>1</Size><ETag>"e${name}"</ETag>`;
  return `<ListBucketResult><IsTruncated>${next !== undefined}</IsTruncated>${more}<Contents>${object}</Contents></ListBucketResult>`;
}

describe("a bucket as a source of models", () => {
  it("has what is below a prefix as files, and nothing beside it", async () => {
    const pinned = await pin("s3://tessera-test/acme/reader");
    expect(pinned).toMatchObject({ name: "reader", repository: "", commit: "" });
    expect(pinned.files.map(({ path, size }) => [path, size])).toEqual([
      ["empty", 0],
      ["model.safetensors", 10_000],
      ["sub/config.json", 2],
    ]);
    const [empty, weights] = pinned.files;
    for (const [file, start, expected] of [
      [weights, 0, WEIGHTS],
      [weights, 9_000, WEIGHTS.subarray(9_000)],
      [empty, 0, Buffer.alloc(0)],
    ] as const) {
      const opened = await pinned.open(file as NonNullable<typeof file>, start, signal);
      expect([opened.start, await bytesOf(opened)]).toEqual([start, expected]);
    }
  });

  it("has one object by its key", async () => {
    const pinned = await pin("s3://tessera-test/single.gguf");
    expect([pinned.name, pinned.files]).toEqual([
      "single",
      [{ path: "single.gguf", size: 10_000, proof: expect.objectContaining({ kind: "etag" }) }],
    ]);
  });

  it("lists objects page by page", async () => {
    await using server = await answering(({ searchParams }) => {
      const token = searchParams.get("continuation-token");
      return [200, pageOf(token ?? "0", token === null ? "1" : token === "1" ? "2" : undefined)];
    });
    const { files } = await pin("s3://tessera-test/many/", { by: server.reader });
    expect(files.map(({ path }) => path)).toEqual(["0", "1", "2"]);
  });

  it.each([
    [403, "AccessDenied", /^SOURCE_REFUSED: the platform's credentials may not read s3:/],
    [301, "PermanentRedirect", /^SOURCE_REFUSED: .* in the region .* \(AWS_REGION\)/],
    [503, "SlowDown", /^SOURCE_UNAVAILABLE: S3 answers 503/],
  ])("tells an answer of %i (%s) in words of its own", async (status, code, expected) => {
    const said = `<Error><Code>${code}</Code><Message>account 123456</Message></Error>`;
    await using server = await answering(() => [status, said]);
    const found = await refusalOf(pin("s3://tessera-test/acme", { by: server.reader }));
    expect(found).toMatch(expected);
    expect(found).not.toContain("123456");
  });

  it("is pinned to its objects, and refused when one was changed or added", async () => {
    await bucket.put("moving/a", "first");
    await bucket.put("moving/b", "other");
    const { pinned, files, open } = await pin("s3://tessera-test/moving");
    expect(pinned).toMatch(/^s3:\/\/tessera-test\/moving#list=[0-9a-f]{64}$/);
    expect((await pin(pinned)).pinned).toBe(pinned);
    await bucket.put("moving/a", "second");
    expect(await refusalOf(pin(pinned))).toMatch(
      /^SOURCE_REFUSED: .* is not what it was when it was pinned/,
    );
    const [file] = files;
    expect(await refusalOf(open(file as NonNullable<typeof file>, 0, signal))).toBe(
      "SOURCE_REFUSED: s3://tessera-test/moving/a was changed after it was pinned: import it again",
    );
    await bucket.put("moving/a", "first");
    expect((await pin(pinned)).pinned).toBe(pinned);
    await bucket.put("moving/c", "new");
    expect(await refusalOf(pin(pinned))).toMatch(/objects were added, changed or removed/);
  });

  it.each([
    ["nobody", []],
    ["another organization", [{ organization: "globex", bucket: "tessera-test", prefix: "" }]],
    ["another bucket", [{ organization: "acme", bucket: "tessera-tes", prefix: "" }]],
    ["a neighbour", [{ organization: "acme", bucket: "tessera-test", prefix: "acme/reader-2" }]],
    ["half of its name", [{ organization: "acme", bucket: "tessera-test", prefix: "acme/read" }]],
  ])("is read by nobody whom its operator does not let: %s", async (_, grants) => {
    const found = await refusalOf(pin("s3://tessera-test/acme/reader", { grants }));
    expect(found).toMatch(/^SOURCE_REFUSED: the operator .* --model-buckets acme=s3:/);
  });

  it("is read below a prefix that is granted", async () => {
    const grants = [{ organization: "acme", bucket: "tessera-test", prefix: "acme" }];
    expect((await pin("s3://tessera-test/acme/reader/sub", { grants })).files).toHaveLength(1);
    const other = pin("s3://tessera-test/acme/reader", { grants, organization: "globex" });
    expect(await refusalOf(other)).toMatch(/does not let organization globex/);
  });

  it.each([
    "s3://tessera-test/acme/../single.gguf",
    "s3://tessera-test/acme//reader",
    "s3://tessera-test/./acme",
    "s3://Tessera/acme",
    "s3://tessera-test/acme?versionId=1",
    "s3://",
  ])("takes no %s", async (source) => {
    expect(await refusalOf(pin(source))).toBe("REQUEST_INVALID: source is not s3://BUCKET/PREFIX");
  });

  it("says what is not there, and what does not answer", async () => {
    const grants = [{ organization: "*", bucket: "no-such-bucket", prefix: "" }];
    expect(await refusalOf(pin("s3://no-such-bucket/acme", { grants }))).toBe(
      "SOURCE_REFUSED: s3://no-such-bucket/acme/ does not exist",
    );
    expect(await refusalOf(pin("s3://tessera-test/nothing"))).toBe(
      "SOURCE_REFUSED: the source has no files",
    );
    using away = new S3Reader({ endpoint: "http://127.0.0.1:1", region: "us-east-1" });
    expect(await refusalOf(pin("s3://tessera-test/acme", { by: away }))).toBe(
      "SOURCE_UNAVAILABLE: S3 does not answer: try again",
    );
  });
});
