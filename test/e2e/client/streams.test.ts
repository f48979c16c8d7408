import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  CallFailedError,
  Connection,
  ConnectionLostError,
  createClient,
  createEndpoint,
  ForeignAnswerError,
  factsOf,
  fetchSchema,
} from "../../../src/client/index.ts";
import type streaming from "../../fixtures/services/serve/streaming.ts";
import { Gate } from "../serve/gate.ts";
import { type Served, serve } from "../serve/served.ts";

let served: Served;
let gate: Gate;
beforeAll(async () => {
  [served, gate] = await Promise.all([serve("streaming"), Gate.build()]);
});
afterAll(async () => {
  await served.stop();
  await gate[Symbol.asyncDispose]();
});

type Streaming = typeof streaming;
const connect = () => createClient<Streaming>({ url: served.origin });

/** A client that knows which endpoints stream, as a generated one does. */
async function connectKnowing() {
  const { routes } = await fetchSchema(new Connection({ url: served.origin }));
  const endpoints = Object.fromEntries(routes.map((route) => [route.name, factsOf(route)]));
  return createClient<Streaming>({ url: served.origin, endpoints });
}

/** Pieces that came, and what was thrown after them. */
async function collected(pieces: AsyncIterable<unknown>) {
  const all: unknown[] = [];
  try {
    for await (const piece of pieces) {
      all.push(piece);
    }
    return { all };
  } catch (error) {
    return { all, error };
  }
}

describe("a client", () => {
  const list = ["a", "", "b\r\nc", "🙂"];

  it("iterates texts, values and bytes", async () => {
    const client = connect();
    expect(await collected(client.texts.stream({ list }))).toEqual({ all: list });
    const values = [1, null, { a: "b\nc" }, "x"];
    expect(await collected(client.values.stream({ list: values }))).toEqual({ all: values });
    const bytes = await collected(client.audio.stream({ list: ["ab", ""] }));
    expect(bytes).toEqual({ all: [new Uint8Array([97, 98]), new Uint8Array()] });
  });

  it.each([
    ["without facts", async () => connect()],
    ["with facts", connectKnowing],
  ])("gets the whole by a call, %s", async (_, make) => {
    const client = await make();
    expect(await client.texts({ list })).toBe(list.join(""));
    expect(await client.values({ list: [1, 2] })).toEqual([1, 2]);
    const file = await client.audio({ list: ["ab", "c"] });
    expect([file.type, await file.text()]).toEqual(["audio/mpeg", "abc"]);
    await expect(client.breaks({ pieces: 2 })).rejects.toThrow("that is all");
  });

  it("has each piece when it is made, and ends the call when it leaves", async () => {
    let left: Promise<unknown> | undefined;
    for await (const piece of connect().gated.stream({ gate: gate.url })) {
      const arrival = await gate.arrival();
      if (piece === "second;") {
        left = arrival.gone;
        break;
      }
      expect(piece).toBe("begun;");
      arrival.open("second;");
    }
    expect(left).toBeDefined();
    await left;
  });

  it("has the pieces before a failure, and the failure", async () => {
    const { all, error } = await collected(connect().breaks.stream({ pieces: 2 }));
    expect(all).toEqual(["piece;", "piece;"]);
    expect(error).toBeInstanceOf(CallFailedError);
    expect(error).toMatchObject({ code: "invalid_argument", message: "that is all" });
    const first = await collected(connect().breaks.stream({ pieces: 0 }));
    expect(first).toMatchObject({ all: [], error: { message: "that is all", status: 400 } });
  });

  it("ends with the reason of its signal", async () => {
    const leaving = new AbortController();
    const { signal } = leaving;
    const pieces = connect().gated.stream({ gate: gate.url }, { signal });
    await pieces.next();
    const arrival = await gate.arrival();
    leaving.abort(new Error("enough"));
    await expect(pieces.next()).rejects.toThrow("enough");
    await arrival.gone;
  });

  it("says that an endpoint does not stream", async () => {
    const { error } = await collected(connect().whole.stream());
    expect(error).toBeInstanceOf(ForeignAnswerError);
  });

  it("takes a stream that breaks off for broken", async () => {
    const server = createServer((_req, res) => {
      res.writeHead(200, { "content-type": "text/event-stream", "tessera-pieces": "text" });
      res.end('id: 1\ndata: "a"\n\n');
    }).listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const { all, error } = await collected(createEndpoint(new Connection({ url }), "any").stream());
    expect(all).toEqual(["a"]);
    expect(error).toBeInstanceOf(ConnectionLostError);
    server.close();
    server.closeAllConnections();
  });
});
