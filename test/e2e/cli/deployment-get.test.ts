import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, expect, it } from "vitest";
import {
  DeploymentPlacementSchema,
  DeploymentStatus,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { Receiver } from "./deploying.ts";

let to: Receiver;
beforeEach(async () => {
  to = await Receiver.start();
  to.secretNames = ["API_KEY"];
});
afterEach(() => to[Symbol.asyncDispose]());

const { READY, STARTING } = DeploymentStatus;
const a = create(DeploymentPlacementSchema, { node: "a", status: READY, revision: 3, workers: 2 });
const b = create(DeploymentPlacementSchema, {
  node: "b",
  status: STARTING,
  revision: 2,
  workers: 1,
});
const c = create(DeploymentPlacementSchema, {
  node: "c",
  status: STARTING,
  revision: 0,
  workers: 0,
});

it("tessera deployment get says what each node has, where there are several", async () => {
  to.states = [{ status: STARTING, nodes: 3, workers: 3, placements: [a, b, c] }];
  const { stdout } = await to.run(["deployment", "get", "sums"]);
  expect(stdout).toMatch(
    /^nodes +a \(ready, 2 workers of revision 3\), b \(starting, 1 worker of revision 2\), c \(starting, no worker\)$/m,
  );
});

it("tessera deployment get does not name the only node", async () => {
  to.states = [{ status: READY, nodes: 1, workers: 2, placements: [a] }];
  const { code, stdout } = await to.run(["deployment", "get", "sums"]);
  expect(code).toBe(0);
  expect(stdout).not.toMatch(/^nodes/m);
});
