/** A server on a free port that answers as a test says. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";

export interface Answering extends AsyncDisposable {
  readonly url: string;
}

/** Answers every request by the listener. */
export async function answering(listener: RequestListener): Promise<Answering> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Answers RPCs, and what is none by `pages`. */
export async function answeringCalls(
  routes: (router: ConnectRouter) => void,
  pages?: RequestListener,
): Promise<Answering> {
  const calls = connectNodeAdapter({ routes });
  return await answering((req, res) =>
    pages !== undefined && !req.url?.startsWith("/tessera.v1.") ? pages(req, res) : calls(req, res),
  );
}
