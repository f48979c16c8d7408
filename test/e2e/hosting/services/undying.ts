import { createServer } from "node:net";
import { api, service } from "tessera-platform";
import * as z from "zod";

/** Ends for nothing that Node would end for, and wants its node's port. */
function clingToLife(): void {
  const hidden = process as unknown as Record<string, unknown>;
  hidden.reallyExit = () => {};
  hidden.exit = () => {};
  process.on("uncaughtException", () => {});
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    process.on(signal, () => {});
  }
}

export default service({
  name: "undying",
  endpoints: {
    /** Tries to listen on the port again and again, until it can. */
    take: api({ input: { port: z.number() } }, ({ port }) => {
      clingToLife();
      const server = createServer((socket) => socket.end("mine"));
      server.on("error", () => {});
      setInterval(() => server.listening || server.listen(port, "127.0.0.1"), 10);
      return process.pid;
    }),
    /** Never comes back, and so never hears that its node is gone. */
    spin: api({}, () => {
      clingToLife();
      for (;;) {
        // Nothing.
      }
    }),
  },
});
