import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { api, service } from "tessera-platform";
import * as z from "zod";

/** Listens wherever it can of these ports, as soon as it is loaded and for ever, and tells so. */
const { PORTS = "", TELL = "" } = process.env;

async function grab(port: number, host: string): Promise<void> {
  for (;;) {
    const taken = Promise.withResolvers<boolean>();
    createServer((socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
      .once("error", () => taken.resolve(false))
      .listen(port, host, () => taken.resolve(true));
    if (await taken.promise) {
      await fetch(`${TELL}/${port}-${host === "::1" ? 6 : 4}`);
      return;
    }
    await sleep(1);
  }
}

for (const port of PORTS.split(",").filter((text) => text !== "")) {
  void grab(Number(port), "127.0.0.1");
  void grab(Number(port), "::1");
}

export default service({
  name: "grabber",
  endpoints: {
    busy: api({ input: { forMs: z.int() } }, async ({ forMs }) => {
      await sleep(forMs);
      return "done";
    }),
  },
});
