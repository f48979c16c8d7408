import { cpSync } from "node:fs";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, it } from "vitest";
import { FederationService } from "../../../gen/tessera/v1/federation_pb.js";
import { artifact, World } from "../hosting/world.ts";
import { newPostgres } from "../start/databases.ts";
import { administration, bearer, Folder, start } from "../start/platform.ts";

it("any of two nodes on one Postgres answers for both", async () => {
  const database = await newPostgres();
  await using world = await World.start({ database });
  await using resources = new AsyncDisposableStack();
  const folder = resources.use(new Folder());
  cpSync(world.folder.data, folder.data, { recursive: true });
  const other = resources.use(await start(folder, { database }));
  await using operator = await administration(world.folder, { database });
  await operator.setMonitoring("acme", true);
  const { value } = await world.platform.createToken(world.cookie, {
    kind: "organization",
    access: ["monitoring"],
  });
  await world.deployed("echo", await artifact());
  const nodesOf = (text: string) => new Set(text.match(/(?<=node=")[^"]+/g));
  for (const { url } of [world.platform, other]) {
    let text = "";
    while (nodesOf(text).size < 2) {
      const path = "/federate?match[]=tessera_queue_length";
      text = await (await fetch(url + path, { headers: bearer(value) })).text();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    const client = createClient(FederationService, createGrpcTransport({ baseUrl: url }));
    let streamed = "";
    const answers = client.federate(
      { match: ["tessera_queue_length"] },
      { headers: bearer(value) },
    );
    for await (const { data } of answers) {
      streamed += Buffer.from(data).toString();
    }
    expect(nodesOf(streamed)).toEqual(nodesOf(text));
  }
});
