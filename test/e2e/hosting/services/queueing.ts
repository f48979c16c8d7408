/** Servers whose requests may be tasks, and one whose may not. */
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { api, service, task } from "tessera-platform";
import * as z from "zod";

let answers = 0;
const seen: string[] = [];
const left: string[] = [];

const server = createServer(async (req, res) => {
  seen.push(req.url ?? "");
  const { pathname, searchParams } = new URL(req.url ?? "", "http://server");
  res.once("close", () => {
    if (!res.writableFinished) {
      left.push(req.url ?? "");
    }
  });
  const body = await buffer(req);
  answers += 1;
  switch (pathname) {
    case "/seen":
      res.end(JSON.stringify(seen));
      return;
    case "/left":
      res.end(JSON.stringify(left));
      return;
    case "/pid":
      res.end(String(process.pid));
      return;
    case "/slow":
      setTimeout(() => res.end(`slow ${searchParams.get("n")}`), Number(searchParams.get("ms")));
      return;
    case "/status/422":
      res.writeHead(422, { "content-type": "application/json", "x-own": "yes" });
      res.end('{"detail":"it has no name"}');
      return;
    case "/status/503":
      res.writeHead(503, { "content-type": "text/plain" }).end(`not now ${answers}`);
      return;
    case "/status/404-long":
      res.writeHead(404).end("x".repeat(300_000));
      return;
    case "/page":
      res.writeHead(201, {
        "content-type": "text/html; charset=utf-8",
        "set-cookie": ["a=1", "b=2"],
        location: "/page/7",
      });
      res.end("<b>made</b>");
      return;
    case "/nothing":
      res.writeHead(204).end();
      return;
    case "/half":
      res.writeHead(200, { "content-length": "100" }).write("half");
      setTimeout(() => res.destroy(), 10);
      return;
    case "/garbage":
      req.socket.end("no answer at all\r\n\r\n");
      return;
    case "/endless": {
      const timer = setInterval(() => res.write("."), 5);
      res.once("close", () => clearInterval(timer));
      return;
    }
    case "/large":
      res.end(Buffer.alloc(Number(searchParams.get("bytes")), "x"));
      return;
    default:
      res.writeHead(200, { "content-type": "application/json" });
      res.end(
        JSON.stringify({
          ...{ method: req.method, url: req.url, headers: req.headers },
          body: body.length > 1_000 ? body.length : body.toString("latin1"),
        }),
      );
  }
});

export default service({
  name: "queueing",
  mounts: {
    "/": {
      app: server,
      concurrency: 20,
      queue: {
        ...{ timeout: "3s", retries: { max: 1, backoff: "10ms" } },
        headers: ["x-tenant", "authorization"],
      },
    },
    "/app": {
      app: (request) => new Response(`app ${request.method} ${new URL(request.url).pathname}`),
      queue: true,
    },
    "/off": { app: (request) => new Response(`off ${request.method} ${request.url}`) },
  },
  endpoints: {
    double: api(
      { input: z.object({ number: z.number() }), output: z.number() },
      ({ number }) => 2 * number,
    ),
    work: task(
      { input: z.object({ number: z.number() }), output: z.number() },
      ({ number }) => 3 * number,
    ),
  },
});
