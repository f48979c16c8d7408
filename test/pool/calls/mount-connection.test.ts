/** HTTP/1.1 connections to mounted servers, which may answer anything. */
import { Duplex } from "node:stream";
import { expect, it } from "vitest";
import { type AnswerHead, MountConnection } from "../../../src/pool/calls/mount-connection.ts";
import { threadTimer } from "../../thread-time.ts";

/** A connection whose server answers by `say`. */
function connected() {
  const sent: string[] = [];
  const stream = new Duplex({
    read() {},
    write(chunk: Buffer, _, done) {
      sent.push(chunk.toString("latin1"));
      done();
    },
  });
  const heard: string[] = [];
  const said: AnswerHead[] = [];
  const connection = new MountConnection(stream, {
    onIdle: () => heard.push("idle"),
    onClosed: () => heard.push("closed"),
  });
  const ask = (method = "GET", hasBody = false): void =>
    connection.send(
      { method, text: `${method} / HTTP/1.1\r\n\r\n`, hasBody },
      {
        onHead: (head, whole) => {
          said.push(head);
          heard.push(whole === undefined ? `${head.status}` : `${head.status} whole ${whole}`);
        },
        onData: (chunk) => heard.push(`data ${chunk}`),
        onEnd: () => heard.push("end"),
        onDrain: () => {},
        onUpgrade: (_head, _stream, first) => heard.push(`upgrade ${first}`),
        onFault: ({ malformed }) => heard.push(`fault ${malformed}`),
      },
    );
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  /** The server sends these texts, each by itself. */
  const say = async (...texts: string[]): Promise<void> => {
    for (const text of texts) {
      stream.push(text, "latin1");
      await turn();
    }
  };
  const end = async (): Promise<void> => {
    stream.push(null);
    await turn();
    await turn();
  };
  return { connection, heard, said, sent, ask, say, end, stream };
}

it("hands on an answer that comes at once as a whole, and takes the next request", async () => {
  const { ask, say, heard, said, connection } = connected();
  ask();
  await say("HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a:  2 \r\nContent-Length: 5\r\n\r\nhello");
  expect(heard).toEqual(["200 whole hello", "idle", "end"]);
  expect(said[0]?.rawHeaders).toEqual(["X-A", "1", "x-a", "2", "Content-Length", "5"]);
  expect(connection.isReused).toBe(false);
  ask();
  expect(connection.isReused).toBe(true);
  await say("HTTP/1.1 204 No Content\r\nconnection: keep-alive\r\n\r\n");
  expect(heard.slice(3)).toEqual(["204 whole ", "idle", "end"]);
});

it("reads heads and bodies in pieces of any size, byte by byte too", async () => {
  const { ask, say, heard } = connected();
  ask();
  const text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
  await say(...text);
  expect(heard).toEqual(["200", "data h", "data i", "idle", "end"]);
  ask();
  const chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n";
  await say(...`${chunked}3;x=y\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n`);
  const rest = ["200", "data a", "data b", "data c", "idle", "end"];
  expect(heard.slice(5)).toEqual(rest);
  ask();
  await say(`${chunked}3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`);
  expect(heard.slice(11)).toEqual(["200", "data abc", "data de", "idle", "end"]);
});

it("trims values of spaces and tabs alone", async () => {
  const { ask, say, said } = connected();
  ask();
  await say("HTTP/1.1 204 No\r\na: \t\xa0b c\x85\xa0\t \r\nb: \t\r\n\r\n");
  expect(said[0]?.rawHeaders).toEqual(["a", "\xa0b c\x85\xa0", "b", ""]);
});

it("leaves out 32 informational heads of each answer, and breaks off at more", async () => {
  const { ask, say, heard } = connected();
  const informational = "HTTP/1.1 103 Early Hints\r\n\r\n";
  for (let turn = 0; turn < 2; turn += 1) {
    ask();
    await say(`${informational.repeat(32)}HTTP/1.1 204 No\r\n\r\n`);
  }
  expect(heard).toEqual(["204 whole ", "idle", "end", "204 whole ", "idle", "end"]);
  ask();
  await say(informational.repeat(20_000));
  expect(heard.slice(6)).toEqual(["fault it has more than 32 informational heads", "closed"]);
});

it("takes no body where there is none, whatever its length is said to be", async () => {
  const { ask, say, heard } = connected();
  ask("HEAD");
  await say("HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n");
  ask();
  await say("HTTP/1.1 304 Not Modified\r\ntransfer-encoding: chunked\r\n\r\n");
  expect(heard).toEqual(["200 whole ", "idle", "end", "304 whole ", "idle", "end"]);
});

it("takes a body without a length until the connection ends", async () => {
  const { ask, say, end, heard } = connected();
  ask();
  await say("HTTP/1.1 200 OK\r\n\r\n", "some", "more");
  await end();
  expect(heard).toEqual(["200", "data some", "data more", "end", "closed"]);
});

it.each([
  ["connection: close", "HTTP/1.1 200 OK\r\nConnection: x, Close\r\ncontent-length: 0\r\n\r\n"],
  [
    "close behind keep-alive",
    "HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\ncontent-length: 0\r\n\r\n",
  ],
  ["HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n"],
  ["a failed application", "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\n\r\n"],
  [
    "bytes behind the answer",
    "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
  ],
])("is not used again after %s", async (_, text) => {
  const { ask, say, heard, stream } = connected();
  ask();
  await say(text);
  expect(heard).not.toContain("idle");
  expect(heard).toContain("end");
  expect(stream.destroyed).toBe(true);
});

it("is not used again where the server has answered before the end of the request", async () => {
  const { ask, say, heard, stream } = connected();
  ask("POST", true);
  await say("HTTP/1.1 413 No\r\ncontent-length: 0\r\n\r\n");
  expect(heard).toEqual(["413 whole ", "end", "closed"]);
  expect(stream.destroyed).toBe(true);
});

it("ends when something comes that nobody asked for", async () => {
  const { say, heard, stream } = connected();
  await say("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
  expect(heard).toEqual(["closed"]);
  expect(stream.destroyed).toBe(true);
});

it("hands its stream on where the server switches protocols, with what came behind the head", async () => {
  const { ask, say, heard, stream } = connected();
  ask();
  await say("HTTP/1.1 101 Switching\r\nupgrade: websocket\r\n\r\nfirst");
  expect(heard).toEqual(["upgrade first"]);
  expect(stream.destroyed).toBe(false);
});

it.each([
  ["no HTTP", "SSH-2.0-OpenSSH_9\r\n\r\n"],
  ["another version", "HTTP/2.0 200 OK\r\n\r\n"],
  ["lines that end otherwise", "HTTP/1.1 200 OK\r\na: 1\nb: 2\r\n\r\n"],
  ["a folded line", "HTTP/1.1 200 OK\r\na: 1\r\n b: 2\r\n\r\n"],
  ["a space before the colon", "HTTP/1.1 200 OK\r\nContent-Length : 3\r\n\r\n"],
  ["a control character", "HTTP/1.1 200 OK\r\na: \0\r\n\r\n"],
  ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\n"],
  ["a signed length", "HTTP/1.1 200 OK\r\ncontent-length: +3\r\n\r\n"],
  [
    "a length beside chunks",
    "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
  ],
  ["another coding", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n"],
  ["a head that is too long", `HTTP/1.1 200 OK\r\na: ${"a".repeat(100_000)}\r\n\r\n`],
  ["a head that never ends", `HTTP/1.1 200 OK\r\n${"a: 1\r\n".repeat(10_000)}`],
  ["spaces without an end", `HTTP/1.1 200 OK\r\na:${" ".repeat(15_000)}\0\r\n\r\n`],
])("takes %s for no answer", async (_, text) => {
  const { ask, say, heard, stream } = connected();
  ask();
  const spentMs = threadTimer();
  await say(text);
  expect(heard).toEqual([expect.stringMatching(/^fault (?!undefined)/), "closed"]);
  expect(stream.destroyed).toBe(true);
  expect(spentMs()).toBeLessThan(500);
});

it.each([
  ["are no numbers", "x\r\n"],
  ["have a sign", "-1\r\n"],
  ["are longer than they say", "1\r\nab\r\n"],
  ["end with a bare line feed", "1\na\r\n"],
  ["have endless lines", `1;${"x".repeat(2_000)}`],
  ["have an endless trailer", `0\r\n${"a: 1\r\n".repeat(10_000)}`],
])("breaks off a body whose chunks %s", async (_, text) => {
  const { ask, say, heard, stream } = connected();
  ask();
  await say("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", text);
  expect(heard).toContainEqual(expect.stringMatching(/^fault (?!undefined)/));
  expect(heard).not.toContain("end");
  expect(stream.destroyed).toBe(true);
});

it("tells of an answer that breaks off, before its head and after it", async () => {
  for (const texts of [[], ["HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\na"]]) {
    const { ask, say, end, heard } = connected();
    ask();
    await say(...texts);
    await end();
    expect(heard.slice(-2)).toEqual(["fault undefined", "closed"]);
  }
});
