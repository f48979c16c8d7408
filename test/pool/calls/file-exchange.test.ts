import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FileExchange } from "../../../src/pool/calls/file-exchange.ts";
import type {
  FileOnDisk,
  FileValue,
  SentPayload,
  StoredFile,
} from "../../../src/protocol/messages.ts";
import type { FileKeeper } from "../../../src/storage/files/keeper.ts";
import { once } from "../../../src/storage/files/keeper.ts";
import { localFiles } from "../../storage/files/local.ts";

const LIMIT = 2_000_000;

let folder: string;
let scratchFolder: string;
let keeper: FileKeeper;
let exchange: FileExchange;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "tessera-exchange-")));
  scratchFolder = join(folder, "scratch");
  mkdirSync(scratchFolder);
  mkdirSync(join(folder, "blobs"));
  keeper = localFiles(join(folder, "blobs")).task;
  exchange = new FileExchange({ scratchFolder, maxFileBytes: LIMIT, maxResultBytes: LIMIT });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const onDisk = (size: number): FileOnDisk => ({ contentType: "a/b", filename: "f", size });
const sent = (size: number): SentPayload => ({ json: "0", files: [onDisk(size)] });
const callPath = (name = "") => join(scratchFolder, "call-1", name);
const data = Buffer.alloc(500_000, 7);

async function read(file: FileValue | StoredFile | undefined): Promise<Buffer> {
  if (file === undefined || "data" in file) {
    return Buffer.from(file?.data ?? []);
  }
  const chunks = [];
  for await (const chunk of keeper.read(file.blob)) {
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

describe("arguments", () => {
  it("are put where the worker looks for them, and removed with the call", async () => {
    const large = await keeper.keep({ contentType: "a/b", filename: "f" }, once(data));
    const small = { contentType: "c/d", data: Buffer.from("small") };
    const payload = { json: '{"x":[0,1]}', files: [small, large] };
    expect(await exchange.stage(1, payload, keeper)).toEqual({
      json: payload.json,
      files: [small, onDisk(data.length)],
    });
    expect(readFileSync(callPath("argument-1")).equals(data)).toBe(true);
    exchange.clear(1);
    await expect.poll(() => readable(callPath("argument-1"))).toBe(false);
  });

  it("that are gone from the blob store are missed", async () => {
    const large = await keeper.keep({ contentType: "a/b" }, once(data));
    await keeper.release({ json: "", files: [large] });
    const staged = exchange.stage(1, { json: "{}", files: [large] }, keeper);
    await expect(staged).rejects.toMatchObject({ name: "BlobMissing" });
  });
});

function readable(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}

describe("a result", () => {
  beforeEach(() => mkdirSync(callPath()));

  it("is taken as it lies there, whatever its worker said of its size", async () => {
    writeFileSync(callPath("result"), data);
    const { files } = await exchange.collect(1, sent(3), keeper);
    expect(files[0]).toMatchObject({ contentType: "a/b", filename: "f" });
    expect(files[0]).toHaveProperty("blob.size", data.length);
    expect((await read(files[0])).equals(data)).toBe(true);
  });

  it("that is a text comes as one, and a small one in memory", async () => {
    const text = { contentType: "application/json", size: 1 };
    writeFileSync(callPath("result"), `"${"x".repeat(400_000)}"`);
    const large = await exchange.collect(1, { json: "", files: [], text }, keeper);
    expect(large).toMatchObject({ json: "", files: [], text: { blob: { size: 400_002 } } });
    writeFileSync(callPath("result"), '"x"');
    const small = await exchange.collect(1, { json: "", files: [], text }, keeper);
    expect(small).toEqual({ json: '"x"', files: [] });
  });

  it("is refused when it is larger than the limit", async () => {
    writeFileSync(callPath("result"), "");
    truncateSync(callPath("result"), LIMIT + 1);
    const tooLarge = { reason: "RESULT_TOO_LARGE" };
    await expect(exchange.collect(1, sent(1), keeper)).rejects.toMatchObject(tooLarge);
    truncateSync(callPath("result"), 3 * LIMIT + 1);
    const text = { json: "", files: [], text: { contentType: "application/json", size: 1 } };
    await expect(exchange.collect(1, text, keeper)).rejects.toMatchObject(tooLarge);
  });

  const secret = "of somebody else";
  it.each<[string, () => void]>([
    ["nothing", () => undefined],
    ["a folder", () => mkdirSync(callPath("result"))],
    ["a named pipe", () => void execFileSync("mkfifo", [callPath("result")])],
    ["a device", () => symlinkSync("/dev/zero", callPath("result"))],
    [
      "a link to a file elsewhere",
      () => {
        writeFileSync(join(folder, "secret"), secret);
        symlinkSync(join(folder, "secret"), callPath("result"));
      },
    ],
    [
      "a file in a folder elsewhere, to which its own was made a link",
      () => {
        mkdirSync(join(folder, "elsewhere"));
        writeFileSync(join(folder, "elsewhere", "result"), secret);
        renameSync(callPath(), join(scratchFolder, "aside"));
        symlinkSync(join(folder, "elsewhere"), join(scratchFolder, "call-1"));
      },
    ],
  ])("is refused when there is %s", async (_what, put) => {
    put();
    const collected = exchange.collect(1, sent(secret.length), keeper);
    await expect(collected).rejects.toMatchObject({ reason: "OUTPUT_INVALID" });
  });

  it("is one file and no more", async () => {
    writeFileSync(callPath("result"), data);
    const two = { json: "0", files: [onDisk(1), onDisk(1)] };
    await expect(exchange.collect(1, two, keeper)).rejects.toMatchObject({
      reason: "OUTPUT_INVALID",
    });
  });
});
