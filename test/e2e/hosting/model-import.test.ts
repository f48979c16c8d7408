import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { MAX_PART_BYTES } from "../../../src/artifacts/parts.ts";
import { createTesseraClient, ModelState } from "../../../src/client/index.ts";
import { FakeHub } from "../../hosting/models/hub.ts";
import { TestBucket } from "../../storage/blobs/bucket.ts";
import { Program } from "../cli/program.ts";
import { Folder, start } from "../start/platform.ts";

const WEIGHTS = randomBytes(3 * MAX_PART_BYTES);

it("an import that is killed goes on behind the parts that are stored", async () => {
  await using hub = await FakeHub.start({ "weights.safetensors": WEIGHTS });
  using folder = new Folder();
  const env = { TESSERA_MODEL_HUB: hub.url };
  let token: string;
  {
    await using platform = await start(folder, { env });
    token = (await platform.createToken(await platform.setUp())).value;
  }
  // The rest of the file comes when the test says so: the node is killed before.
  const hanging = Promise.withResolvers<void>();
  hub.faults.cutAfter.set("weights.safetensors", 2 * MAX_PART_BYTES + 5_000_000);
  hub.faults.onContent = (_, start) => (start > 0 ? hanging.promise : undefined);
  {
    await using program = new Program(["start", "--port", "0", "--data", folder.data], {
      cwd: folder.path,
      env,
    });
    const [, port] = await program.says("stdout", / runs on http:\/\/localhost:(\d+)\n/);
    const { models } = createTesseraClient({ url: `http://localhost:${port}`, token });
    const begun = await models.importModel({ source: "hf://acme/reader" });
    expect(begun).toMatchObject({ state: ModelState.IMPORTING, model: "reader" });
    for await (const { bytesDone } of models.watchModel({ model: "reader", version: 1 })) {
      if (Number(bytesDone) >= 2 * MAX_PART_BYTES) {
        break;
      }
    }
    await program.stop("SIGKILL");
  }
  hanging.resolve();
  const starts: number[] = [];
  hub.faults.onContent = (_, start) => void starts.push(start);
  await using platform = await start(folder, { env });
  const { models } = createTesseraClient({ url: platform.url, token });
  for await (const version of models.watchModel({ model: "reader", version: 1 })) {
    if (version.state !== ModelState.IMPORTING) {
      expect(version).toMatchObject({ state: ModelState.READY, reason: "" });
    }
  }
  expect(starts).toEqual([2 * MAX_PART_BYTES]);
}, 120_000);

it("an organization imports from the places of a bucket that the operator grants it", async () => {
  await using bucket = await TestBucket.start();
  const weights = randomBytes(MAX_PART_BYTES + 1_000);
  await bucket.put("weights/acme/reader/model.safetensors", weights);
  await bucket.put("weights/acme/reader/sub/config.json", "{}");
  await bucket.put("weights/acme-secret/model.safetensors", "not theirs");
  using folder = new Folder();
  await using platform = await start(folder, {
    env: {
      TESSERA_S3_ENDPOINT: bucket.endpoint,
      TESSERA_MODEL_BUCKETS:
        "acme=s3://tessera-test/weights/acme,globex=s3://tessera-test/weights/acme-secret",
    },
  });
  const { value: token } = await platform.createToken(await platform.setUp());
  const { models } = createTesseraClient({ url: platform.url, token });
  const source = "s3://tessera-test/weights/acme/reader";
  const begun = await models.importModel({ source });
  expect(begun).toMatchObject({ model: "reader", source, fileCount: 2, repository: "" });
  for await (const version of models.watchModel({ model: "reader", version: 1 })) {
    if (version.state !== ModelState.IMPORTING) {
      expect(version).toMatchObject({
        state: ModelState.READY,
        sizeBytes: 1_002n + BigInt(MAX_PART_BYTES),
      });
    }
  }
  expect(await models.importModel({ source })).toMatchObject({
    version: 1,
    state: ModelState.READY,
  });
  await bucket.put("weights/acme/reader/sub/config.json", "[]");
  expect(await models.importModel({ source })).toMatchObject({ version: 2 });
  await expect(
    models.importModel({ source: "s3://tessera-test/weights/acme-secret" }),
  ).rejects.toMatchObject({
    rawMessage:
      "the operator of this platform does not let organization acme read s3://tessera-test/weights/acme-secret (tessera start --model-buckets acme=s3://tessera-test/weights/acme-secret)",
  });
}, 60_000);
