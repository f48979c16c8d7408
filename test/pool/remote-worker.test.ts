/** A worker in Node on another machine does what every worker does. */
import { expect, test } from "vitest";
import { buildArtifact } from "../../src/artifacts/build.ts";
import type { ExecutionEnd } from "../../src/pool/calls/execution.ts";
import { launchersFor } from "../../src/pool/launchers.ts";
import { servicePath } from "../worker/process.ts";
import { REMOTE_SKIPS, remoteWorkers } from "./remote-workers.ts";
import { workerContract } from "./worker-contract.ts";

let built: ReturnType<typeof buildArtifact> | undefined;
const { start, processEnded } = remoteWorkers(
  () => (built ??= buildArtifact(servicePath("serve/contract.ts"))),
  { launchOf: launchersFor(), environments: undefined },
);

workerContract("a worker in Node on another machine", start, { processEnded, skip: REMOTE_SKIPS });

test("a process that ends on another machine is told of in the log, and another one takes calls", async () => {
  const lines: string[] = [];
  const worker = await start("", {
    onOutput: (line, stream) => stream === "node" && lines.push(line),
  });
  const call = (endpoint: string) =>
    new Promise<ExecutionEnd>((onEnd) => {
      const facts = { endpoint, taskId: "t", attempt: 1, timeoutMs: 30_000 };
      worker.execute({ ...facts, kind: "api", arguments: { json: "{}", files: [] } }, { onEnd });
    });
  expect(await call("exit")).toEqual({
    kind: "lost",
    message: "it exited with code 3",
    alone: true,
    outOfMemory: false,
  });
  await expect
    .poll(() => lines)
    .toEqual(["the process of the service ended: it exited with code 3"]);
  await expect.poll(() => call("asked")).toMatchObject({ kind: "result" });
  worker.kill("the test is over");
});
