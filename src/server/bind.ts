/** Binding of the server's port. */
import { once } from "node:events";
import type { AddressInfo, Server } from "node:net";
import { createServer } from "node:net";

export interface ListenOptions {
  readonly port: number;
  readonly host: string;
}

/** Binds the port and returns it. Rejects with a message that says what to do. */
export async function listen(server: Server, { port, host }: ListenOptions): Promise<number> {
  try {
    server.listen({ port, host });
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  } catch (err) {
    const code = (err as NodeJS.ErrnoException).code;
    const reasons: Record<string, string> = {
      EADDRINUSE: "another program is using it; choose another with --port",
      EACCES: "this user may not use it; choose one from 1024 with --port",
      EADDRNOTAVAIL: "this machine does not have that address; check --host",
      ENOTFOUND: "the host is not known; check --host",
    };
    const reason = reasons[code ?? ""] ?? (err instanceof Error ? err.message : String(err));
    throw new Error(`cannot listen on ${host}:${port}: ${reason}`, { cause: err });
  }
}

/**
 * Returns the port, or a free one for 0, to callers that need the number before
 * the server exists. If another program takes it in between, binding fails
 * with a message.
 */
export async function choosePort({ port, host }: ListenOptions): Promise<number> {
  if (port !== 0) {
    return port;
  }
  const server = createServer();
  const chosen = await listen(server, { port, host });
  server.close();
  await once(server, "close");
  return chosen;
}
