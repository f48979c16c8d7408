/**
 * The relay of a sandboxed worker: forwards bytes between a port of its own
 * loopback, where HTTP clients look for a proxy, and the socket of the node's
 * egress proxy, which decides about each connection.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { EGRESS_RELAY_PORT } from "../protocol/egress.ts";

/** The head of the proxy's answer to `CONNECT`. */
const MAX_HEAD_CHARACTERS = 4_096;

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

/**
 * Relays a port of the sandbox's loopback to the same port of the machine's, through the egress
 * proxy, which decides about it. Rejects if the port is taken.
 */
export async function startLoopbackRelay(socketPath: string, asked: string): Promise<void> {
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const proxy = connect({ path: socketPath, allowHalfOpen: true });
    proxy.on("error", () => client.destroy());
    client.on("error", () => proxy.destroy());
    proxy.write(`CONNECT ${asked} HTTP/1.1\r\nHost: ${asked}\r\n\r\n`);
    let head = "";
    const onHead = (chunk: Buffer): void => {
      head += chunk.toString("latin1");
      const end = head.indexOf("\r\n\r\n");
      if (end < 0 && head.length <= MAX_HEAD_CHARACTERS) {
        return;
      }
      proxy.off("data", onHead);
      if (!/^HTTP\/1\.1 200/.test(head)) {
        client.destroy();
        proxy.destroy();
        return;
      }
      client.write(Buffer.from(head.slice(end + 4), "latin1"));
      join(client, proxy);
      join(proxy, client);
    };
    proxy.on("data", onHead);
  });
  server.listen(Number(asked.split(":").at(-1)), "127.0.0.1");
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
