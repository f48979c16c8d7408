import { Code, ConnectError } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DeploymentStatus } from "../../../gen/tessera/v1/deployment_pb.js";
import { problem } from "../../../src/errors.ts";
import { Receiver } from "./deploying.ts";

let to: Receiver;
beforeEach(async () => {
  to = await Receiver.start();
});
afterEach(() => to[Symbol.asyncDispose]());

const { READY, DEGRADED, STOPPED } = DeploymentStatus;

const sums = {
  deploymentId: "1",
  name: "sums",
  status: READY,
  revision: 3,
  targetRevision: 3,
  workers: 2,
  nodes: 1,
  settings: { minWorkers: 2, maxWorkers: 4 },
};
const other = { deploymentId: "2", name: "other", status: STOPPED };
const unwell = { status: DEGRADED, statusReason: "worker 3 crashes\n\u001b[2Jat x.ts", workers: 1 };

/** What is shown, without the time at the beginning of each line. */
const linesOf = (stdout: string) =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => line.replace(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ /, ""));

describe("tessera deployment watch", () => {
  it("shows the deployments, and what changes of them, over broken and ended streams", async () => {
    const answers = [
      async function* () {
        yield { deployments: [other, sums] };
        yield {};
        yield { deployments: [{ ...sums, ...unwell }] };
        throw new ConnectError("gone", Code.Unavailable);
      },
      async function* () {
        yield { deployments: [{ ...sums, ...unwell }] };
      },
      async function* () {
        yield { deployments: [{ ...sums, revision: 3, targetRevision: 4 }] };
        yield { deployments: [other], removedDeploymentIds: ["1"] };
      },
    ];
    to.person.beforeWaitEnds = () => {
      if (answers.length === 0) {
        to.person.interrupt();
      }
    };
    to.changes = () => answers.shift()?.() as ReturnType<Receiver["changes"]>;
    const { code, stdout, stderr } = await to.run(["deployment", "watch"]);
    expect(linesOf(stdout)).toEqual([
      "other stopped, revision none, 0 workers",
      "sums ready, revision 3, 2 of 2..4 workers on 1 node",
      "sums degraded, revision 3, 1 of 2..4 workers on 1 node: worker 3 crashes",
      "other deleted",
      "sums ready, revision 3, then 4, 2 of 2..4 workers on 1 node",
      "sums deleted",
      "other stopped, revision none, 0 workers",
    ]);
    expect(stderr).toBe("The connection is lost: trying again until Ctrl-C …\n");
    expect(code).toBe(130);
    expect(to.person.waitsMs).toEqual([500, 500, 500]);
  });

  it("ends when the one that it was asked for is deleted", async () => {
    to.changes = async function* () {
      yield { deployments: [sums] };
      yield { removedDeploymentIds: ["1"] };
    };
    const { code, stdout } = await to.run(["deployment", "watch", "sums", "-o", "json"]);
    expect(code).toBe(0);
    expect(linesOf(stdout).map((line) => JSON.parse(line))).toMatchObject([
      { deployments: [{ name: "sums", status: "ready" }], removed_deployment_ids: [] },
      { deployments: [], removed_deployment_ids: ["1"] },
    ]);
    expect(to.watchRequests).toMatchObject([{ deployment: "sums" }]);
  });

  it("does not go on where the server refuses", async () => {
    // biome-ignore lint/correctness/useYield: it fails at once
    to.changes = async function* () {
      throw problem("DEPLOYMENT_NOT_FOUND", 'deployment "sums" does not exist');
    };
    expect(await to.run(["deployment", "watch", "sums"])).toMatchObject({ code: 4 });
    expect(to.watchRequests).toHaveLength(1);
  });
});
