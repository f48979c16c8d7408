/**
 * The program of a worker process: loads one service, executes the calls that the
 * node sends, and returns their results (`../protocol/messages.ts`). It holds no
 * durable state: if it dies, the node knows which calls were under way.
 *
 * States: waiting for `load`; loading, until the service says that it is ready; ready; stopping (after `stop`, until the last
 * call has ended). An uncaught exception or unhandled rejection in user code ends
 * the process by Node's own rules, with the error on stderr and a non-zero code.
 */
import { dirname } from "node:path";
import { EGRESS_SOCKET_VARIABLE } from "../protocol/egress.ts";
import { MAX_REFUSAL_CHARACTERS, type NodeMessage } from "../protocol/messages.ts";
import { takeChannel } from "./channel.ts";
import { Meters } from "./custom-metrics.ts";
import { startEgressRelay } from "./egress-relay.ts";
import { Executor } from "./execute.ts";
import { messageOf } from "./failure.ts";
import { loadService } from "./load.ts";
import type { Mounts } from "./mounts.ts";
import { Outbox } from "./outbox.ts";
import { takeOutputOfCalls } from "./output.ts";
import { speakToDeployer } from "./permission-errors.ts";
import { ServiceReadiness } from "./readiness.ts";
import { nameFilesFrom } from "./stack.ts";

type LoadMessage = Extract<NodeMessage, { type: "load" }>;

const exit = process.exit.bind(process);
let executor: Executor | undefined;
let mounts: Mounts | undefined;
/** The service that is being loaded: an exit during loading is its fault. */
let loadingPath: string | undefined;

const channel = takeChannel({ message: receive, disconnect: () => exit(1) });
const meters = new Meters(channel);
const outbox = new Outbox(channel, meters);

// Ctrl-C and service managers signal all processes of a group, but the node decides when to stop.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {});
}

process.once("exit", (code) => {
  if (loadingPath !== undefined) {
    const message = `${loadingPath}: the process exited with code ${code} while loading`;
    channel.send({ type: "refused", message });
  }
  outbox.flush();
});

function receive(message: NodeMessage): void {
  switch (message.type) {
    case "load":
      void load(message);
      break;
    case "calls":
      for (const call of message.calls) {
        executor?.start(call);
      }
      break;
    case "batch":
      executor?.startBatch(message.calls);
      break;
    case "text_results":
      executor?.setTextEndpoints(message.endpoints);
      break;
    case "abort":
      executor?.abort(message.id, message.reason);
      break;
    case "more":
      executor?.more(message.id, message.count);
      break;
    case "connect":
      mounts?.connect(message.mount);
      break;
    case "retire":
      mounts?.retire();
      break;
    case "ping":
      channel.send({ type: "pong", sequence: message.sequence });
      break;
    case "stop":
      stop();
      break;
  }
}

async function load({
  servicePath,
  code,
  isolated,
  probe,
  ...options
}: LoadMessage): Promise<void> {
  loadingPath = servicePath;
  const connectMount = channel.connectMountsIn(options.scratchFolder);
  const { [EGRESS_SOCKET_VARIABLE]: egressSocket } = process.env;
  if (isolated) {
    // With an egress proxy, the sandbox of the kernel holds the worker: there are no other sockets.
    channel.isolate({ unixSockets: egressSocket !== undefined });
    speakToDeployer();
    nameFilesFrom(servicePath);
  }
  try {
    if (egressSocket !== undefined) {
      await startEgressRelay(egressSocket);
    }
    if (typeof code !== "string") {
      throw new Error(`${servicePath} is not JavaScript, which this host runs`);
    }
    const service = await loadService(servicePath, code, meters);
    takeOutputOfCalls();
    const { ready } = service;
    const say = (said: string): void => channel.send({ type: "readiness", said });
    if (service.mounts.length > 0) {
      const { Mounts } = await import("./mounts.ts");
      mounts = new Mounts(service.mounts, {
        ...{ folder: dirname(servicePath), env: process.env },
        ...{ connect: connectMount, onEnded: giveUp },
      });
    }
    // A build asks for the manifest; what the service is ready for is not there.
    if (probe === undefined) {
      await mounts?.start(say);
    }
    const health = mounts?.health;
    const readiness =
      (ready ?? health) !== undefined && probe === undefined
        ? new ServiceReadiness({ ready, health, servicePath }, say)
        : undefined;
    await readiness?.reached();
    loadingPath = undefined;
    executor = new Executor(service, { channel, outbox, meters, ...options });
    channel.send({ type: "ready", manifest: service.manifest });
    meters.open();
    void readiness?.follow();
  } catch (err) {
    loadingPath = undefined;
    const message = messageOf(err).slice(0, MAX_REFUSAL_CHARACTERS);
    channel.send({ type: "refused", message });
    // Flushes its output first, because the node shows it.
    process.stdout.write("", () => process.stderr.write("", () => exit(1)));
  }
}

/** Ends the worker because a program of its service has ended. */
function giveUp(reason: string): void {
  loadingPath = undefined;
  const message = reason.slice(0, MAX_REFUSAL_CHARACTERS);
  channel.send({ type: "refused", message }, () => exit(1));
}

function stop(): void {
  loadingPath = undefined;
  if (executor === undefined) {
    exit(0);
  } else {
    executor.whenIdle(() => {
      const stopped = mounts?.stop() ?? Promise.resolve();
      void stopped.then(() => outbox.flush(() => exit(0)));
    });
  }
}
