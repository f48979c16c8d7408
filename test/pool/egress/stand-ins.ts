/**
 * A program for a network namespace of its own: servers on stand-in addresses of
 * its loopback, and an egress proxy that is asked for each. Writes as JSON what
 * the proxy answered, and which servers were connected to.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { EgressPolicy } from "../../../src/pool/egress/policy.ts";
import { EgressProxy } from "../../../src/pool/egress/proxy.ts";

const [folder = "", ...addresses] = process.argv.slice(2);
const reached: string[] = [];
const answers: Record<string, string> = {};

const proxy = new EgressProxy({
  path: join(folder, "egress.sock"),
  policy: new EgressPolicy({
    network: { access: "open", hosts: [] },
    allowed: [],
    // All stand-ins are addresses of this machine, which is not what is tested here.
    ownAddresses: () => [],
  }),
  onDecision: () => {},
  onLine: () => {},
});
await proxy.start();
for (const address of addresses) {
  const server = createServer((socket) => {
    reached.push(address);
    socket.end("hello");
  });
  server.listen(0, address);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connect(proxy.path);
  const host = address.includes(":") ? `[${address}]` : address;
  socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: x\r\n\r\n`);
  answers[address] = (await text(socket)).split(" ")[1] ?? "";
  server.close();
}
await proxy[Symbol.asyncDispose]();
process.stdout.write(JSON.stringify({ answers, reached }));
