import { once } from "node:events";
import { create, type Message } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.js";
import { problem } from "../../../src/errors.ts";
import { Library, RequestDesc, startLibrary } from "./library.ts";

const answer = (name: string): Message => create(RequestDesc, { name, genre: 2 } as never);

async function* answers(...names: string[]): AsyncGenerator<Message> {
  for (const name of names) {
    yield answer(name);
  }
}

/** An answer in JSON. */
const line = (name: string): string =>
  `{"name":"${name}","genre":"poetry","tags":[],"genres":[],"books":[]}`;

describe("a stream of answers", () => {
  it("is NDJSON unless events are asked for", async () => {
    await using server = await startLibrary({ stream: () => answers("a", "b") });
    const res = await fetch(`${server.origin}/lib/v1/books/x:watch`);
    expect(res.headers.get("content-type")).toBe("application/x-ndjson; charset=utf-8");
    expect(await res.text()).toBe(`${line("a")}\n${line("b")}\n`);
  });

  it("is Server-Sent Events with an end when they are asked for", async () => {
    await using server = await startLibrary({ stream: () => answers("a") });
    const headers = { accept: "application/x-ndjson;q=0.5, text/event-stream" };
    const res = await fetch(`${server.origin}/lib/v1/books/x:watch`, { headers });
    expect(res.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(await res.text()).toBe(`data: ${line("a")}\n\nevent: end\ndata: {}\n\n`);
  });

  it("that fails before its first answer is an error response", async () => {
    await using server = await startLibrary({
      stream: async function* () {
        yield* answers();
        throw problem("QUEUE_FULL", "too many", { retryAfterMs: 1500 });
      },
    });
    const res = await fetch(`${server.origin}/lib/v1/books/x:watch`);
    expect(res.status).toBe(429);
    expect(res.headers.get("retry-after")).toBe("2");
    expect(await res.json()).toMatchObject({ code: "resource_exhausted", message: "too many" });
  });

  it.each([
    ["application/x-ndjson", /\n\{"error":\{"code":"not_found","message":"gone".*\}\}\n$/],
    ["text/event-stream", /\n\nevent: error\ndata: \{"code":"not_found","message":"gone".*\}\n\n$/],
  ])("that fails later ends with the error (%s)", async (accept, ending) => {
    await using server = await startLibrary({
      stream: async function* () {
        yield* answers("a");
        throw problem("TASK_NOT_FOUND", "gone");
      },
    });
    const res = await fetch(`${server.origin}/lib/v1/books/x:watch`, { headers: { accept } });
    expect(res.status).toBe(200);
    expect(await res.text()).toMatch(ending);
  });

  it("keeps a quiet connection alive with comments", async () => {
    const released = Promise.withResolvers<void>();
    await using server = await startLibrary({
      keepAliveMs: 5,
      stream: async function* () {
        yield* answers("a");
        await released.promise;
      },
    });
    const headers = { accept: "text/event-stream" };
    const res = await fetch(`${server.origin}/lib/v1/books/x:watch`, { headers });
    let text = "";
    for await (const chunk of res.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.includes(": keep-alive\n\n")) {
        released.resolve();
      }
    }
    expect(text).toMatch(/^data: .*\n\n(: keep-alive\n\n)+event: end\ndata: \{\}\n\n$/);
  });

  it.each(["text/event-stream", "application/x-ndjson"])(
    "that is quiet from the start shows that it is there (%s)",
    async (accept) => {
      const released = Promise.withResolvers<void>();
      await using server = await startLibrary({
        firstAnswerMs: 1,
        stream: async function* () {
          await released.promise;
          yield* answers("a");
        },
      });
      const res = await fetch(`${server.origin}/lib/v1/books/x:watch`, { headers: { accept } });
      expect(res.headers.get("content-type")).toContain(accept);
      released.resolve();
      expect(await res.text()).toContain(line("a"));
    },
  );

  it("aborts its signal and is left when the client goes away", async () => {
    const aborted = Promise.withResolvers<void>();
    const left = Promise.withResolvers<void>();
    await using server = await startLibrary({
      stream: async function* ({ origin }) {
        try {
          yield* answers("a");
          await once(origin.signal, "abort");
          aborted.resolve();
        } finally {
          left.resolve();
        }
      },
    });
    const client = new AbortController();
    const res = await fetch(`${server.origin}/lib/v1/books/x:watch`, { signal: client.signal });
    await res.body?.getReader().read();
    client.abort();
    await aborted.promise;
    await left.promise;
  });

  it("stops producing while the client does not read", async () => {
    let produced = 0;
    const text = "x".repeat(64 * 1024);
    const left = Promise.withResolvers<void>();
    await using server = await startLibrary({
      stream: async function* () {
        try {
          while (produced < 2_000) {
            produced += 1;
            yield answer(text);
          }
        } finally {
          left.resolve();
        }
      },
    });
    const client = new AbortController();
    const res = await fetch(`${server.origin}/lib/v1/books/x:watch`, { signal: client.signal });
    await res.body?.getReader().read();
    // The server's own event loop has had its turns when another call has been answered.
    await fetch(`${server.origin}/lib/v1/books/y`);
    expect(produced).toBeLessThan(2_000);
    client.abort();
    await left.promise;
    expect(produced).toBeLessThan(2_000);
  });

  it("of raw bodies is their bytes", async () => {
    await using server = await startLibrary({
      stream: async function* () {
        yield create(HttpBodySchema, { contentType: "text/csv", data: Buffer.from("a,") });
        yield create(HttpBodySchema, { data: Buffer.from("b") });
      },
    });
    const res = await fetch(`${server.origin}/lib/v1/books/x:download`);
    expect(res.headers.get("content-type")).toBe("text/csv");
    expect(await res.text()).toBe("a,b");
  });
});

describe("a unary call", () => {
  it("aborts its signal when the client goes away", async () => {
    const called = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<void>();
    await using server = await startLibrary({
      unary: async ({ origin, message }) => {
        called.resolve();
        await once(origin.signal, "abort");
        aborted.resolve();
        return message;
      },
    });
    const client = new AbortController();
    const call = fetch(`${server.origin}/lib/v1/books/x`, { signal: client.signal });
    await called.promise;
    client.abort();
    await expect(call).rejects.toThrow();
    await aborted.promise;
  });
});

describe("at start", () => {
  it("refuses the same service twice, naming the paths", async () => {
    await expect(startLibrary({ services: [Library, Library] })).rejects.toThrow(
      /GET \/lib\/v1\/books\/\{name\} \(library\.v1\.Library\.GetBook\) and .* match the same paths/,
    );
  });
});
