import { createHash, randomBytes } from "node:crypto";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { buildArtifact } from "../../../src/artifacts/build.ts";
import { MAX_PART_BYTES } from "../../../src/artifacts/parts.ts";
import { Folder } from "../start/platform.ts";
import { upload, World } from "./world.ts";

const MEBIBYTE = 1024 ** 2;
const PACKAGES = join(import.meta.dirname, "..", "..", "..", "node_modules");

const service = (version: number): string => `
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { api, service } from "tessera-platform";

export default service({
  name: "weighing",
  endpoints: {
    digest: api({}, async () => {
      const hash = createHash("sha256");
      for await (const chunk of createReadStream(new URL("./weights.bin", import.meta.url))) {
        hash.update(chunk);
      }
      return { version: ${version}, sha256: hash.digest("hex") };
    }),
  },
});
`;

it("weights of more than one file may have are deployed, and not again with the next revision", async () => {
  await using world = await World.start();
  using folder = new Folder();
  symlinkSync(PACKAGES, join(folder.path, "node_modules"));
  const weights = randomBytes(2 * MAX_PART_BYTES + 1_000);
  writeFileSync(join(folder.path, "weights.bin"), weights);
  const build = (version: number) => {
    writeFileSync(join(folder.path, "service.ts"), service(version));
    return buildArtifact(join(folder.path, "service.ts"), { include: ["weights.bin"] });
  };
  const sha256 = createHash("sha256").update(weights).digest("hex");
  const first = await build(1);
  await world.deployed("weighing", first);
  const call = async () => (await world.call("weighing", "/digest", { body: {} })).json;
  expect(await call()).toEqual({ version: 1, sha256 });
  const second = await build(2);
  const sizes = new Map(second.index.files.map((file) => [file.sha256, file.size]));
  const sent = await upload(world.client, second);
  expect(sent.reduce((sum, digest) => sum + (sizes.get(digest) ?? 0), 0)).toBeLessThan(MEBIBYTE);
  await world.deployed("weighing", second);
  await expect.poll(call).toEqual({ version: 2, sha256 });
}, 240_000);
