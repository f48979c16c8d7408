/**
 * Runs a program of the machine that speaks to a registry, in a sandbox without a network: its
 * clients find the egress proxy at the relay, and a registry on the machine's own loopback, which
 * they do not ask a proxy for, at the same port of the sandbox.
 *
 *   relayed <socket of the proxy> <loopback host and port, or an empty text> <program> [arguments]
 */
import { spawn } from "node:child_process";
import { startEgressRelay, startLoopbackRelay } from "./egress-relay.ts";

const [socketPath = "", loopback = "", program = "", ...args] = process.argv.slice(2);
await startEgressRelay(socketPath);
if (loopback !== "") {
  await startLoopbackRelay(socketPath, loopback);
}
const child = spawn(program, args, { stdio: ["ignore", "inherit", "inherit"] });
child.on("error", ({ message }) => {
  process.stderr.write(`${message}\n`);
  process.exit(1);
});
child.on("exit", (code) => process.exit(code ?? 1));
