/** Downloads of container images that are broken off, and images that have layers in common. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import type { ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { Images } from "../../../src/artifacts/images/images.ts";
import { kernelSandbox, skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { skipped as noRegistry, TestRegistry } from "./registry.ts";

const MEBIBYTE = 1024 ** 2;
const DAY_MS = 86_400_000;
const PATH = process.env.PATH ?? "";
const skipped = noSandbox || noRegistry;

/** A layer that is in no other image. */
const layer = (name: string) => [{ path: name, content: randomBytes(MEBIBYTE) }];

describe.skipIf(skipped)(`downloads of container images${skipped}`, () => {
  let home: string;
  let registry: TestRegistry;
  /** A server that answers as the registry does, but not for `held`. */
  let host: string;
  /** The layer that is not given, what is answered, and what waits for it. */
  let held = "";
  let waiting: ServerResponse[] = [];
  const half = (res: ServerResponse): void => {
    res.write(randomBytes(100_000));
    waiting.push(res);
  };
  let answer: (res: ServerResponse) => void = half;
  /** The blobs that were asked for. */
  let asked: string[] = [];
  beforeAll(async () => {
    if (skipped) {
      return;
    }
    registry = await TestRegistry.open();
    host = await registry.imitate((path, res) => {
      const [, blob = ""] = /\/blobs\/sha256:([0-9a-f]{64})/.exec(path) ?? [];
      asked.push(...(blob === "" ? [] : [blob]));
      if (blob === "" || blob !== held) {
        return false;
      }
      answer(res);
      return true;
    });
  });
  afterAll(() => registry?.[Symbol.asyncDispose]());
  beforeEach(() => {
    home = realpathSync(mkdtempSync(join(tmpdir(), "tessera-downloads-")));
    [held, waiting, asked, answer] = ["", [], [], half];
  });
  afterEach(() => rmSync(home, { recursive: true }));

  const open = async (allowed = host): Promise<Images> => {
    const images = new Images({
      ...{ sandbox: kernelSandbox(), folder: join(home, "store"), searchPath: PATH },
      ...{ env: { SSL_CERT_FILE: registry.authority }, allowed: [allowed], idleMs: 5_000 },
      ...{ maxBytesPerOrganization: 8_192 * MEBIBYTE, log: { info() {}, warn() {} } },
      now: Date.now,
    });
    await images.start();
    return images;
  };

  /** The digests of the layers of an image. */
  const layersOf = (name: string): string[] => {
    const { layers } = registry.manifest(name) as { layers: { digest: string }[] };
    return layers.map(({ digest }) => digest.replace("sha256:", ""));
  };

  const push = (name: string, layers: readonly ReturnType<typeof layer>[]) => {
    registry.push(name, { layers });
    return { name: `${host}/${name}`, layers: layersOf(name) };
  };

  const lockOf = async (name: string): Promise<string> => await (await open()).lock(name);

  /** How often each of these blobs was asked for. */
  const timesOf = (blobs: readonly string[]): number[] =>
    blobs.map((blob) => asked.filter((each) => each === blob).length);

  /** Files below the folder of downloads, by their names. */
  const downloaded = (): string[] =>
    readdirSync(join(home, "store/downloads"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ name }) => name);
  const pathOf = (blob: string): string => {
    const [path = ""] = readdirSync(join(home, "store/downloads"), { recursive: true })
      .map(String)
      .filter((each) => basename(each) === blob);
    return join(home, "store/downloads", path);
  };
  const isThere = async (blob: string): Promise<void> =>
    await vi.waitFor(() => expect(downloaded()).toContain(blob), { timeout: 20_000 });

  it("goes on with the layers that it lacks when it was broken off, and leaves nothing half", async () => {
    const { name, layers } = push("broken-off", [layer("one"), layer("two")]);
    const [first = "", second = ""] = layers;
    const lock = await lockOf(name);
    const images = await open();
    held = second;
    const abort = new AbortController();
    const broken = images.hold({ lock }, { signal: abort.signal });
    await isThere(first);
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    abort.abort(new Error("enough"));
    await expect(broken).rejects.toThrow("enough");
    await vi.waitFor(() => expect(downloaded()).toEqual([first]));
    held = "";
    const said: string[] = [];
    const { image } = await images.hold({ lock }, { onProgress: (line) => said.push(line) });
    expect(timesOf(layers)).toEqual([1, 2]);
    expect(said[0]).toMatch(/fetches the image \S+: 1 of 3 MiB/);
    expect(readdirSync(image.root)).toEqual(expect.arrayContaining(["one", "two"]));
  });

  it("goes on after its skopeo was killed", async () => {
    const { name, layers } = push("killed", [layer("one"), layer("two")]);
    const [first = "", second = ""] = layers;
    const lock = await lockOf(name);
    const images = await open();
    held = second;
    const failed = expect(images.hold({ lock })).rejects.toThrow("cannot be fetched");
    await isThere(first);
    const skopeo = readdirSync("/proc").filter((pid) => {
      try {
        return (
          basename(readlinkSync(`/proc/${pid}/exe`)) === "skopeo" &&
          readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(home)
        );
      } catch {
        return false;
      }
    });
    expect(skopeo).toHaveLength(1);
    process.kill(Number(skopeo[0]), "SIGKILL");
    await failed;
    held = "";
    await images.hold({ lock });
    expect(timesOf(layers)).toEqual([1, 2]);
  });

  it("goes on after the node was killed", async () => {
    const { name, layers } = push("node", [layer("one"), layer("two")]);
    const [first = "", second = ""] = layers;
    const lock = await lockOf(name);
    held = second;
    const program = join(import.meta.dirname, "image-holder.ts");
    const node = spawn(
      process.execPath,
      [program, join(home, "store"), host, registry.authority, lock],
      { stdio: "inherit" },
    );
    await isThere(first);
    await vi.waitFor(() => expect(waiting).toHaveLength(1));
    const begun = expect.stringMatching("^oci-put-blob") as string;
    await vi.waitFor(() => expect(downloaded()).toContainEqual(begun));
    const closed = once(waiting[0] as ServerResponse, "close");
    const exited = once(node, "exit");
    node.kill("SIGKILL");
    await Promise.all([exited, closed]);
    held = "";
    const images = await open();
    expect(downloaded()).toEqual([first]);
    await images.hold({ lock, organizationId: "acme" });
    expect(timesOf(layers)).toEqual([1, 2]);
    expect(readdirSync(join(home, "store")).filter((each) => /partial/.test(each))).toEqual([]);
  });

  it.each([
    [429, { "retry-after": "0" }, "takes no more requests now (429)"],
    [307, { location: "https://10.0.0.1/layer" }, "is a private address"],
    [500, {}, "cannot be fetched"],
  ])("goes on after the registry answered %i", async (status, headers, message) => {
    const { name, layers } = push(`answered/${status}`, [layer("one"), layer("two")]);
    const lock = await lockOf(name);
    const images = await open();
    held = layers[1] ?? "";
    answer = (res) =>
      void isThere(layers[0] ?? "").then(() => res.writeHead(status, headers).end());
    await expect(images.hold({ lock })).rejects.toThrow(message);
    held = "";
    await images.hold({ lock });
    expect(timesOf(layers.slice(0, 1))).toEqual([1]);
  });

  it("has a layer once that two images have, also when both are fetched at once", async () => {
    const base = layer("base");
    const images = await open();
    const [one, two, three] = ["one", "two", "three"].map((name) =>
      push(`shared/${name}`, [base, layer(name)]),
    );
    if (!(one && two && three)) {
      throw new Error("there are three");
    }
    const locks = await Promise.all([one, two, three].map(({ name }) => lockOf(name)));
    const [first = "", ...others] = locks;
    await Promise.all(others.map((lock) => images.hold({ lock })));
    const { image } = await images.hold({ lock: first });
    expect(readdirSync(image.root)).toEqual(expect.arrayContaining(["base", "one"]));
    expect(timesOf(one.layers)).toEqual([1, 1]);
  });

  it("downloads a layer itself that another organization has", async () => {
    const { name, layers } = push("others/one", [layer("base"), layer("one")]);
    const base = layers[0] ?? "";
    const images = await open();
    await images.hold({ lock: await lockOf(name), organizationId: "acme" });
    // A manifest that names the layer is no proof that its registry gives it.
    const theirs = await registry.imitate((path, res) => {
      if (!path.includes("/blobs/") || !path.includes(base)) {
        return false;
      }
      res.writeHead(404, { "content-type": "application/json" });
      res.end('{"errors":[{"code":"BLOB_UNKNOWN","message":"blob unknown"}]}');
      return true;
    });
    const evil = await open(theirs);
    const lock = (await lockOf(name)).replace(host, theirs);
    await expect(evil.hold({ lock, organizationId: "evil" })).rejects.toThrow(/cannot|has no/);
  });

  it("downloads a layer again that is not as its digest says", async () => {
    const { name, layers } = push("damaged", [layer("one"), layer("two")]);
    const [first = "", second = ""] = layers;
    const lock = await lockOf(name);
    const images = await open();
    const held = await images.hold({ lock });
    held.release();
    writeFileSync(pathOf(first), "other bytes");
    rmSync(held.folder, { recursive: true });
    expect(await (await open()).hold({ lock })).toMatchObject({ folder: held.folder });
    expect(timesOf([first, second])).toEqual([2, 1]);
  });

  it("keeps the layers of the images that are there, and others for a while", async () => {
    const kept = push("swept/kept", [layer("kept")]);
    const gone = push("swept/gone", [layer("gone")]);
    const images = await open();
    await images.hold({ lock: await lockOf(kept.name) });
    const other = await images.hold({ lock: await lockOf(gone.name) });
    const [old = "", unused = ""] = [...kept.layers, ...gone.layers];
    for (const blob of [old, unused]) {
      utimesSync(
        pathOf(blob),
        new Date(Date.now() - 2 * DAY_MS),
        new Date(Date.now() - 2 * DAY_MS),
      );
    }
    await images.sweep({ unusedForMs: DAY_MS });
    expect(downloaded()).toEqual(expect.arrayContaining([old, unused]));
    other.release();
    await images.sweep({ unusedForMs: 0 });
    expect(downloaded()).toEqual([old]);
  });
});
