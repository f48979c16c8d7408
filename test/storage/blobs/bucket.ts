/** A bucket on an S3 server of the test's own. */
import { readdir } from "node:fs/promises";
import { PutObjectCommand } from "@aws-sdk/client-s3";
import S3rver from "s3rver";
import type { S3Options } from "../../../src/storage/blobs/s3.ts";
import { newS3Client } from "../../../src/storage/s3-client.ts";
import { TestFolder } from "../sqlite/databases.ts";

const BUCKET = "tessera-test";

/** What the server takes, by the names that the environment has for it. */
const CREDENTIALS = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };

export class TestBucket implements AsyncDisposable {
  readonly #folder: TestFolder;
  #server: S3rver;
  readonly port: number;

  /** Starts the server, and has the environment name the credentials that it takes until it is gone. */
  static async start(): Promise<TestBucket> {
    Object.assign(process.env, CREDENTIALS);
    const folder = new TestFolder();
    const server = newServer(folder, 0);
    const { port } = await server.run();
    return new TestBucket(folder, server, port);
  }

  private constructor(folder: TestFolder, server: S3rver, port: number) {
    this.#folder = folder;
    this.#server = server;
    this.port = port;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  options(changes: Partial<S3Options> = {}): S3Options {
    const { endpoint } = this;
    return { bucket: BUCKET, prefix: "some/where/", endpoint, region: "us-east-1", ...changes };
  }

  /** Writes an object. */
  async put(key: string, body: Uint8Array | string): Promise<void> {
    const client = newS3Client({ endpoint: this.endpoint, region: "us-east-1" });
    await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: Buffer.from(body) }));
    client.destroy();
  }

  /** How many objects there are. */
  async count(): Promise<number> {
    const files = await readdir(this.#folder.file(`objects/${BUCKET}`), { recursive: true });
    return files.filter((file) => file.endsWith("._S3rver_object")).length;
  }

  async stop(): Promise<void> {
    await this.#server.close();
  }

  async startAgain(): Promise<void> {
    this.#server = newServer(this.#folder, this.port);
    await this.#server.run();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    this.#folder[Symbol.dispose]();
    for (const name of Object.keys(CREDENTIALS)) {
      delete process.env[name];
    }
  }
}

function newServer(folder: TestFolder, port: number): S3rver {
  return new S3rver({
    address: "127.0.0.1",
    port,
    silent: true,
    directory: folder.file("objects"),
    configureBuckets: [{ name: BUCKET }],
  });
}
