import { launchNode, nodeProgram } from "../../src/pool/launch/node.ts";
import { launchSandboxed } from "../../src/pool/launch/sandboxed.ts";
import { startLocal } from "./local-workers.ts";
import { kernelSandbox, skipped } from "./sandbox/available.ts";
import { workerContract } from "./worker-contract.ts";

workerContract("a worker in Node", startLocal(launchNode()));
workerContract(
  "a worker in the sandbox",
  startLocal((options) => launchSandboxed(kernelSandbox(), nodeProgram)(options)),
  { skipped },
);
