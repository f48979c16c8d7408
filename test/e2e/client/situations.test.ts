/** What callers are told apart, and what they are told. */
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  BusyError,
  CallFailedError,
  createClient,
  DeploymentStartingError,
  ForeignAnswerError,
  QueueFullError,
  TaskExpiredError,
  TimeoutError,
  TokenError,
  UnknownEndpointError,
  UnreachableError,
} from "../../../src/client/index.ts";
import { problem, type Reason } from "../../../src/errors.ts";
import { errorJson } from "../../../src/server/http/problem.ts";
import { type Clients, type ServedClients, serveClients } from "./served.ts";

const TOKEN = "a-token-for-clients";

let served: ServedClients;
beforeAll(async () => {
  served = await serveClients({ token: TOKEN });
});
afterAll(() => served[Symbol.asyncDispose]());

function connect(options: Partial<Parameters<typeof createClient>[0]> = {}) {
  return createClient<Clients>({ url: served.url, token: TOKEN, ...options });
}

/** Another server than ours. */
async function listen(listener: RequestListener) {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** A server that refuses so many times, and then answers "done". */
async function refusing(reason: Reason, times: number, retryAfterMs?: number) {
  let asked = 0;
  const server = await listen((_req, res) => {
    asked += 1;
    if (asked > times) {
      res.setHeader("content-type", "application/json").end('"done"');
      return;
    }
    const refused = problem(reason, "not now", {
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    });
    res.statusCode = 503;
    for (const [name, value] of refused.metadata) {
      res.setHeader(name, value);
    }
    res.setHeader("content-type", "application/json").end(JSON.stringify(errorJson(refused)));
  });
  return { url: server.url, server, asked: () => asked };
}

describe("where no deployment answers", () => {
  it("a URL without a server is told, and asked again before", async () => {
    const { url, ...server } = await listen(() => {});
    await server[Symbol.asyncDispose]();
    const client = connect({ url, retries: 1 });
    await expect(client.tick()).rejects.toThrow(UnreachableError);
    await expect(client.tick()).rejects.toThrow(/no server .*ECONNREFUSED.*check the URL/);
    for (const none of ["http://nowhere.invalid", "http://127.0.0.1:1"]) {
      await expect(connect({ url: none }).tick()).rejects.toThrow(UnreachableError);
    }
  });

  it.each([
    [200, "text/html", "<h1>Welcome</h1>", /a web page came back \(HTTP 200\).*is the URL/],
    [404, "text/html", "<h1>Nothing here</h1>", /a web page came back \(HTTP 404\)/],
    [502, "text/html", "<h1>Bad gateway</h1>", /a proxy before the server .*try again later/],
    [200, "application/json", "{", /not a deployment's answer: application\/json "\{"/],
    [302, "text/plain", "", /sends callers on to \/login/],
  ])("the answer of something else is told: %i %s", async (status, type, body, message) => {
    await using server = await listen((_req, res) => {
      res.writeHead(status, { "content-type": type, location: "/login" }).end(body);
    });
    const called = connect({ url: server.url, retries: 0 }).echo({ value: 1 });
    await expect(called).rejects.toThrow(ForeignAnswerError);
    await expect(called).rejects.toThrow(message);
  });

  it.each(["tsrp_a b", "tsrp_ä", ""])(
    "a token that no header carries is refused unseen",
    (token) => {
      expect(() => connect({ token })).toThrow(/^the token has characters/);
    },
  );

  it.each(["localhost:3000", "ftp://x", ""])("%j is no URL to call", (url) => {
    expect(() => connect({ url })).toThrow(/url must be such as/);
  });
});

describe("a server that is not ready", () => {
  it("is asked again when nothing has run, after the time that it asks for", async () => {
    const { url, server, asked } = await refusing("NO_WORKER", 1, 1_000);
    await using _ = server;
    const begun = performance.now();
    expect(await connect({ url }).echo({ value: 1 })).toBe("done");
    expect(performance.now() - begun).toBeGreaterThan(990);
    expect(asked()).toBe(2);
  });

  it("is left alone when the time is too short for what it asks", async () => {
    const { url, server, asked } = await refusing("NO_WORKER", 9, 60_000);
    await using _ = server;
    const called = connect({ url, timeout: "5s" }).echo({ value: 1 });
    await expect(called).rejects.toThrow(DeploymentStartingError);
    await expect(called).rejects.toMatchObject({ retryAfterMs: 60_000 });
    expect(asked()).toBe(1);
  });

  it("is not asked for a call again that may have run", async () => {
    const { url, server, asked } = await refusing("SHUTTING_DOWN", 9);
    await using _ = server;
    await expect(connect({ url }).echo({ value: 1 })).rejects.toThrow(BusyError);
    expect(asked()).toBe(1);
  });

  it.each(["STORAGE_UNAVAILABLE", "SHUTTING_DOWN"] as const)(
    "is asked again for what is read: %s",
    async (reason) => {
      const { url, server, asked } = await refusing(reason, 2);
      await using _ = server;
      expect(await connect({ url }).add.task("0").get()).toBe("done");
      expect(asked()).toBe(3);
    },
  );

  it("is given up after the last repetition", async () => {
    const { url, server, asked } = await refusing("QUEUE_FULL", 9);
    await using _ = server;
    await expect(connect({ url, retries: 2 }).echo({ value: 1 })).rejects.toThrow(QueueFullError);
    expect(asked()).toBe(3);
  });
});

describe("what changes while a client runs", () => {
  it("is an endpoint that is gone", async () => {
    const gone = createClient({ url: served.url, token: TOKEN }).gone;
    const called = gone?.({});
    await expect(called).rejects.toThrow(UnknownEndpointError);
    await expect(called).rejects.toThrow(/generate the client again/);
  });

  it("is a token that expires between submit and get, and another one", async () => {
    let token = TOKEN;
    const client = connect({ token: () => token });
    const task = await client.add.submit({ numbers: [1] });
    await task.wait();
    token = "expired";
    await expect(task.get()).rejects.toThrow(TokenError);
    await expect(task.get()).rejects.toThrow(/it expired or was revoked/);
    token = TOKEN;
    expect(await task.get()).toBe(1);
  });

  it("is a result that has expired, which is told from a task that never was", async () => {
    const client = connect();
    const task = await client.brief.submit();
    await task.ended();
    const failure = () =>
      task.get().then(
        () => "a result",
        (err: unknown) => (err as Error).name,
      );
    await expect.poll(failure).toBe("TaskExpiredError");
    await expect(task.get()).rejects.toThrow(TaskExpiredError);
    await expect(client.brief.task(task.id).get()).rejects.toMatchObject({
      name: "TaskNotFoundError",
    });
  });
});

describe("time", () => {
  it("is over for a call, and for a wait, which leaves the task", async () => {
    await using silent = await listen(() => {});
    const late = connect({ url: silent.url, timeout: 50 }).tick();
    await expect(late).rejects.toThrow(TimeoutError);
    const task = await connect().add.submit({ numbers: [1] }, { delay: "1h" });
    await expect(task.wait({ timeout: 50 })).rejects.toThrow(/it goes on/);
    const followed = task.wait({ timeout: 50, onProgress: () => {} });
    await expect(followed).rejects.toThrow(TimeoutError);
    expect((await task.getStatus()).value).toBe("queued");
    await task.cancel();
  });

  it("ends with a signal, whose reason is thrown, in a call, a pause, a wait and a watch", async () => {
    const reason = new Error("enough");
    const abortedSoon = () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(reason), 30);
      return controller.signal;
    };
    await using silent = await listen(() => {});
    const { url, server } = await refusing("NO_WORKER", 99, 30_000);
    await using _ = server;
    await expect(connect({ url: silent.url }).tick({}, { signal: abortedSoon() })).rejects.toBe(
      reason,
    );
    await expect(connect({ url }).tick({}, { signal: abortedSoon() })).rejects.toBe(reason);
    const task = await connect().add.submit({ numbers: [1] }, { delay: "1h" });
    await expect(task.wait({ signal: abortedSoon() })).rejects.toBe(reason);
    const watched = (async () => {
      for await (const _event of task.watch({ signal: abortedSoon() })) {
        // The first says that it is queued, and no other comes.
      }
    })();
    await expect(watched).rejects.toBe(reason);
    await task.cancel();
  });
});

it("a function that fails is told as itself, once", async () => {
  const failed = connect().fail({ code: "unavailable", message: "the model is away" });
  await expect(failed).rejects.toThrow(CallFailedError);
  await expect(failed).rejects.toMatchObject({
    message: "the model is away",
    code: "unavailable",
    reason: "CALL_FAILED",
    status: 503,
  });
});

it("a result can be read as it arrives", async () => {
  const task = await connect().produce.submit({ bytes: 1_000_000 });
  await task.ended();
  const { name, size, stream } = await task.open();
  expect({ name, size }).toEqual({ name: "produced.bin", size: 1_000_000 });
  let bytes = 0;
  for await (const chunk of stream) {
    bytes += chunk.length;
  }
  expect(bytes).toBe(1_000_000);
});
