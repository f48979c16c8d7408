/**
 * The relay of a sandboxed worker: forwards bytes between a port of its own
 * loopback, where HTTP clients look for a proxy, and the socket of the node's
 * egress proxy, which decides about each connection.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { EGRESS_RELAY_PORT } from "../protocol/egress.ts";

/** Starts the relay, which ends with the process. Rejects if the port is taken. */
export async function startEgressRelay(socketPath: string): Promise<void> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const proxy = connect({ path: socketPath, allowHalfOpen: true });
    join(client, proxy);
    join(proxy, client);
  });
  server.listen(EGRESS_RELAY_PORT, "127.0.0.1");
  await once(server, "listening");
  server.on("error", () => {}); // One connection could not be accepted.
  server.unref();
}

function join(from: Socket, to: Socket): void {
  from.on("error", () => to.destroy());
  from.once("close", () => {
    if (!from.readableEnded) {
      to.destroy();
    }
  });
  from.pipe(to);
}
