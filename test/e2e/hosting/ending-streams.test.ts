/** A node that stops while streams are open, as their callers see it. */
import { once } from "node:events";
import { connect } from "node:http2";
import { expect, it } from "vitest";
import { bearer } from "../start/platform.ts";
import {
  all,
  developerStreams,
  endpointStreams,
  open,
  openHttp,
  reasonsOf,
  TARGET,
} from "./streams.ts";
import { artifact, call, World } from "./world.ts";

it("every stream of a node that stops ends with SHUTTING_DOWN, in every protocol", async () => {
  await using world = await World.start();
  await world.deployed("endless", await artifact("endless"), { authorization: true });
  const { value } = await world.platform.createToken(world.cookie, {
    access: ["developer_operations", "protected_endpoint"],
    all_deployments: true,
  });
  const headers = bearer(value);
  const post = (path: string) => call(world.platform, "endless", path, { body: {}, token: value });
  const { json } = await post("/trickle/submit");
  const taskId = json.task_id;
  const made = await post(`/trickle/access?task_id=${taskId}`);
  const opened = await open({
    ...endpointStreams(world.platform, { taskId, headers }),
    ...developerStreams(world.platform, headers),
    "/events by an access": openHttp(world.platform, made.json.path, { headers: {} }),
  });
  const session = connect(world.platform.url);
  const order: string[] = [];
  session.on("goaway", () => order.push("GOAWAY"));
  const stream = session.request({
    ...{ ":method": "POST", ":path": "/drip", "content-type": "application/json" },
    ...{ ...headers, ...TARGET },
  });
  stream.end("{}");
  await once(stream, "data");
  stream.on("data", (chunk) => /SHUTTING_DOWN/.test(String(chunk)) && order.push("error"));
  const ended = once(stream, "close");
  await world.platform.started.stop();
  expect(await reasonsOf(opened)).toEqual(all(opened, "SHUTTING_DOWN"));
  await ended;
  expect(order.slice(0, 2)).toEqual(["GOAWAY", "error"]);
});
