import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { MAX_PART_BYTES } from "../../../src/artifacts/parts.ts";
import { createTesseraClient, ModelState } from "../../../src/client/index.ts";
import { FakeHub } from "../../hosting/models/hub.ts";
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
