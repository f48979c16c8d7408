import { once } from "node:events";
import { Agent } from "node:http";
import { type AddressInfo, createServer, connect as dial, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { Exposition } from "../../../src/pool/exposition/exposition.ts";
import { Scraper } from "../../../src/pool/exposition/scrape.ts";

const PAGE = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na 1\n";
/** The second chunk of it is none. */
const BROKEN = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\nno\r\n";

/** A server that answers each request on a connection with the next of these texts. */
async function serving(answer: (connection: number, request: number) => string) {
  let connections = 0;
  const server = createServer((socket: Socket) => {
    const connection = ++connections;
    let requests = 0;
    socket.on("error", () => {});
    socket.on("data", () => socket.write(answer(connection, ++requests)));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true });
  agent.createConnection = () => dial(port, "127.0.0.1");
  onTestFinished(() => agent.destroy());
  return agent;
}

/** Reads metrics over the agent: twice, where the first time something is read. Resolves with what is said. */
async function read(agent: Agent, { isFirstRead = false } = {}): Promise<string[]> {
  const said: string[] = [];
  const changed = Promise.withResolvers<void>();
  const exposition = new Exposition({
    onChanges: () => changed.resolve(),
    onUnread: () => {},
    onLine: (line) => said.push(line),
  });
  const source = exposition.source("the server at /");
  const scraper = new Scraper({ agent, path: "/metrics", source });
  if (isFirstRead) {
    scraper.start();
    await changed.promise;
  }
  await scraper.finish();
  exposition[Symbol.dispose]();
  return said;
}

describe("the metrics of a mounted server", () => {
  it("are asked for once where an answer breaks on a connection that was kept", async () => {
    let connections = 0;
    const agent = await serving((connection, request) => {
      connections = connection;
      return connection > 1 ? "no HTTP\r\n\r\n" : request > 1 ? BROKEN : PAGE;
    });
    expect(await read(agent, { isFirstRead: true })).toEqual([
      expect.stringContaining("the metrics of the server at / cannot be read: "),
    ]);
    expect(connections).toBe(1);
  });

  it("do not keep a worker whose server changes the protocol", async () => {
    const agent = await serving(
      () => "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
    );
    expect(await read(agent)).toEqual([expect.stringContaining("its answer is not HTTP")]);
  });
});
