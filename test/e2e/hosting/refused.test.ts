import { createHash } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  IMAGE_LOCK_NAME,
  SYSTEM_LOCK_NAME,
  writeIndex,
} from "../../../src/artifacts/index-file.ts";
import { openFile } from "../../../src/artifacts/pack.ts";
import { currentPlatform } from "../../../src/artifacts/platform.ts";
import {
  createTesseraClient,
  DeploymentStatus,
  errorFacts,
  NetworkAccess,
  type TesseraClient,
} from "../../../src/client/index.ts";
import { artifact, messages, reasonOf, upload, World } from "./world.ts";

describe("a deploy", () => {
  let world: World;

  beforeAll(async () => {
    world = await World.start({ config: { readyTimeoutMs: 3_000, sandbox: "permission" } });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  const reason = async (call: Promise<unknown>): Promise<string | undefined> =>
    call.then(
      () => "ok",
      (err: unknown) => errorFacts(err)?.reason,
    );
  const create = async (index: string, deployment = "refused") =>
    reason(world.client.deployments.createRevision({ deployment, index: Buffer.from(index) }));

  it("refuses an index that is none, or is for something else", async () => {
    const text = writeIndex((await artifact()).index);
    const other = (from: string | RegExp, to: string): string => text.replace(from, to);
    expect(text).toContain('"format":1');
    for (const index of [
      text.slice(0, -10),
      other('"format":1', '"format":2'),
      other(/"tessera":"\d+"/, '"tessera":"99"'),
      other(/"path":"service.js"/, '"path":"../service.js"'),
      other(/"size":\d+/, '"size":999999999999'),
      ` ${text}`,
      JSON.stringify({ ...JSON.parse(text), platform: "plan9-mips" }),
    ]) {
      expect(await create(index), index.slice(0, 60)).toBe("ARTIFACT_INVALID");
    }
    expect(await create(text, "Not_A_Label")).toBe("REQUEST_INVALID");
    expect(await create(text)).toBe("FILES_MISSING");
    const { deployments } = await world.client.deployments.listDeployments({});
    expect(deployments).toEqual([]);
  });

  it("refuses native code, of whatever platform, unless the operator allows it", async () => {
    const { index } = await artifact();
    for (const platform of ["plan9-mips", currentPlatform()]) {
      expect(await create(writeIndex({ ...index, platform }))).toBe("ARTIFACT_INVALID");
    }
  });

  it("refuses system packages, which need the kernel's sandbox", async () => {
    const { index } = await artifact();
    const lock = { path: SYSTEM_LOCK_NAME, size: 1, sha256: "0".repeat(64), executable: false };
    const text = writeIndex({ ...index, files: [...index.files, lock] });
    expect(await create(text)).toBe("SANDBOX_UNAVAILABLE");
    const request = { packages: ["ffmpeg"] };
    const locking = world.client.deployments.lockSystemPackages(request);
    await expect(locking).rejects.toThrow(
      "its system packages (packages) need the kernel's sandbox",
    );
  });

  it("refuses a container image, which needs the kernel's sandbox, and one beside system packages", async () => {
    const { index } = await artifact();
    const lock = { path: IMAGE_LOCK_NAME, size: 1, sha256: "0".repeat(64), executable: false };
    const packages = { ...lock, path: SYSTEM_LOCK_NAME };
    const text = writeIndex({ ...index, files: [lock, ...index.files] });
    expect(await create(text)).toBe("SANDBOX_UNAVAILABLE");
    const both = writeIndex({ ...index, files: [lock, packages, ...index.files] });
    expect(await create(both)).toBe("ARTIFACT_INVALID");
    const service = { ...index.service, image: "debian:12" };
    expect(await create(writeIndex({ ...index, service }))).toBe("ARTIFACT_INVALID");
    const locking = world.client.deployments.lockImage({ image: "debian:12" });
    await expect(locking).rejects.toThrow("its image (image) needs the kernel's sandbox");
  });

  it("refuses a network that this node could not enforce, or that is none", async () => {
    const text = writeIndex((await artifact()).index);
    const withNetwork = (access: NetworkAccess, hosts: string[] = []) =>
      reason(
        world.client.deployments.createRevision({
          deployment: "refused",
          index: Buffer.from(text),
          settings: { network: { access, hosts } },
        }),
      );
    expect(await withNetwork(NetworkAccess.NONE)).toBe("SANDBOX_UNAVAILABLE");
    expect(await withNetwork(NetworkAccess.ALLOW, ["a.example"])).toBe("SANDBOX_UNAVAILABLE");
    expect(await withNetwork(NetworkAccess.OPEN)).toBe("FILES_MISSING");
    expect(await withNetwork(NetworkAccess.UNSPECIFIED)).toBe("REQUEST_INVALID");
    expect(await withNetwork(NetworkAccess.ALLOW)).toBe("REQUEST_INVALID");
    expect(await withNetwork(NetworkAccess.OPEN, ["a.example"])).toBe("REQUEST_INVALID");
    expect(await withNetwork(NetworkAccess.ALLOW, ["https://a.example"])).toBe("REQUEST_INVALID");
  });

  it("takes 150 uploads of an organization at once, and leaves room for those of others", async () => {
    const cookie = world.cookie;
    await world.platform.call("/api/v1/organizations", { name: "beta" }, cookie);
    const { value } = await world.platform.createToken(cookie, { organization: "beta" });
    const beta = createTesseraClient({ url: world.platform.url, token: value });
    const content = Buffer.from("of an organization");
    const sha256 = createHash("sha256").update(content).digest("hex");
    const file = { sha256, size: content.length };
    const send = (client: TesseraClient, chunks: Readable) =>
      client.deployments.uploadFile(messages(file, chunks));
    const once = (client: TesseraClient) => reason(send(client, Readable.from([content])));
    const waiting = Array.from({ length: 150 }, () => new PassThrough());
    const uploads = waiting.map((chunks) => send(world.client, chunks));
    await expect.poll(() => once(world.client)).toBe("SERVER_BUSY");
    expect(await once(beta)).toBe("ok");
    for (const chunks of waiting) {
      chunks.end(content);
    }
    await Promise.all(uploads);
    expect(await once(world.client)).toBe("ok");
  });

  it("refuses a file that is not what was announced, and keeps nothing of it", async () => {
    const content = Buffer.from("what was meant");
    const sha256 = createHash("sha256").update(content).digest("hex");
    const send = (sent: Uint8Array, size = content.length) =>
      reason(
        world.client.deployments.uploadFile(messages({ sha256, size }, Readable.from([sent]))),
      );
    expect(await send(Buffer.from("what was sent"))).toBe("ARTIFACT_INVALID");
    expect(await send(Buffer.from("what was ment!"))).toBe("ARTIFACT_INVALID");
    expect(await send(content.subarray(0, 3))).toBe("ARTIFACT_INVALID");
    expect(await send(Buffer.concat([content, content]))).toBe("ARTIFACT_INVALID");
    expect(await send(content, 2 ** 40)).toBe("REQUEST_INVALID");
    const missing = await world.client.deployments.findMissingFiles({ sha256: [sha256] });
    expect(missing.sha256).toEqual([sha256]);
    expect(await send(content)).toBe("ok");
    expect(await send(content)).toBe("ok");
  });

  it("that is cut in the middle leaves nothing to be seen", async () => {
    const built = await artifact("echo", { '"one"': '"cut"' });
    const [file] = built.index.files.toSorted((a, b) => b.size - a.size);
    if (file === undefined) {
      throw new Error("the artifact has no files");
    }
    const controller = new AbortController();
    const cut = async function* () {
      for await (const chunk of openFile(built, file)) {
        yield chunk.subarray(0, 10);
        controller.abort();
      }
    };
    const uploading = world.client.deployments.uploadFile(messages(file, cut()), {
      signal: controller.signal,
    });
    await expect(uploading).rejects.toThrow();
    const { sha256 } = await world.client.deployments.findMissingFiles({ sha256: [file.sha256] });
    expect(sha256).toEqual([file.sha256]);
    expect(await create(writeIndex(built.index), "cut")).toBe("FILES_MISSING");
    const get = world.client.deployments.getDeployment({ deployment: "cut" });
    expect(await reason(get)).toBe("DEPLOYMENT_NOT_FOUND");
    await upload(world.client, built);
    await world.deployed("cut", built);
  });

  it("refuses settings that cannot be", async () => {
    const built = await artifact();
    const deploy = (settings: object) => reason(world.deploy("settings", built, { settings }));
    expect(await deploy({ minWorkers: 3, maxWorkers: 2 })).toBe("REQUEST_INVALID");
    expect(await deploy({ minWorkers: 3 })).toBe("REQUEST_INVALID");
    expect(await deploy({ maxWorkers: 1_000 })).toBe("REQUEST_INVALID");
    expect(await deploy({ memoryMib: 1 })).toBe("REQUEST_INVALID");
    expect(await deploy({ env: { "not a name": "x" } })).toBe("REQUEST_INVALID");
    expect(await deploy({ env: { LD_PRELOAD: "./x.so" } })).toBe("REQUEST_INVALID");
  });

  it("of a service that throws at import fails, with what it wrote", async () => {
    const broken = await artifact("echo", { 'const VERSION = "one";': BROKEN });
    await world.deploy("broken", broken, { settings: { env: { BREAK: "yes" } } });
    const failed = await world.until("broken", ({ status }) => status === DeploymentStatus.FAILED);
    expect(failed.statusReason).toContain("no model was found");
    expect(failed.statusReason).toContain("looking for the model");
    // Its file is named as in the artifact, wherever the node keeps it.
    expect(failed.statusReason).toMatch(/\bat module echo\.ts$/);
    expect(failed.statusReason).not.toContain(world.folder.path);
    expect(failed.revision).toBe(0);
    const answer = await world.call("broken", "/say", { body: { text: "x" } });
    expect([answer.status, reasonOf(answer)]).toEqual([503, "DEPLOYMENT_FAILED"]);
    await world.deployed("broken", await artifact());
  });

  it("of a service that never gets ready fails when its time is up", async () => {
    const endless = await artifact("echo", { 'const VERSION = "one";': ENDLESS });
    await world.deploy("endless", endless, { settings: { env: { WAIT: "yes" } } });
    const failed = await world.until("endless", ({ status }) => status === DeploymentStatus.FAILED);
    expect(failed.statusReason).toContain("waiting for something");
    expect((await world.call("endless", "/readyz")).status).toBe(503);
  });

  it("that fails leaves the revision before serving, and says so", async () => {
    await world.deployed("kept", await artifact());
    const broken = await artifact("echo", { 'const VERSION = "one";': BROKEN });
    await world.deploy("kept", broken, { settings: { env: { BREAK: "yes" } } });
    const failed = await world.until("kept", ({ status }) => status === DeploymentStatus.FAILED);
    expect(failed).toMatchObject({ revision: 1, targetRevision: 2 });
    expect(failed.statusReason).toContain("no model was found");
    const answer = await world.call("kept", "/say", { body: { text: "x" } });
    expect(answer.text).toBe("one x");
    expect((await world.call("kept", "/readyz")).status).toBe(200);
  });
});

const ENDLESS = `const VERSION = "endless";
console.log("waiting for something");
if (process.env.WAIT) {
  setInterval(() => undefined, 1_000);
  await new Promise(() => undefined);
}`;

const BROKEN = `const VERSION = "broken";
console.log(\`looking for the model\\nat module \${import.meta.filename}\`);
if (process.env.BREAK) {
  throw new Error("no model was found");
}`;
