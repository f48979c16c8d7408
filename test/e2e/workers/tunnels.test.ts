/** Connections to mounted servers of joined workers that are no honest ones, on a real node. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { request } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { SendQueue } from "../../../src/api/worker/work.ts";
import { WorkerPlace } from "../../../src/client/index.ts";
import { artifact, reasonOf, World } from "../hosting/world.ts";
import { json, TestWorker } from "./test-worker.ts";

const ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";
const KIBIBYTE = 1024;

type Said =
  Parameters<TestWorker["client"]["tunnel"]>[0] extends AsyncIterable<infer One> ? One : never;

let world: World;
let token: string;
const workers: TestWorker[] = [];

function newWorker(value = token): TestWorker {
  const worker = new TestWorker(world.platform.url, value);
  workers.push(worker);
  return worker;
}

async function joined(features = ["mounts"]): Promise<TestWorker> {
  const worker = await newWorker().register({ features });
  return worker.open({ say: 1, "/": 5, "/short": 5 });
}

/** The number of the connection that a worker is asked for, after these. */
async function asked(worker: TestWorker, after = 0n): Promise<bigint> {
  const { message } = await worker.until(
    (each) => each.message.case === "connect" && each.message.value.id > after,
  );
  return message.case === "connect" ? message.value.id : 0n;
}

/** A connection of a worker: what it sends, and all that comes, or the error of its end. */
function tunnel(worker: TestWorker, header?: { session?: string; id: bigint }) {
  const said = new SendQueue<Said>();
  const say = (text: string): void => said.send({ data: Buffer.from(text) });
  if (header) {
    said.send({ header: { session: worker.session, ...header } });
  }
  let received = "";
  const left = new AbortController();
  const ended = (async () => {
    try {
      for await (const { data } of worker.client.tunnel(said, { signal: left.signal })) {
        received += Buffer.from(data).toString();
      }
      return undefined;
    } catch (err) {
      return ConnectError.from(err);
    }
  })();
  return { said, say, ended, leave: () => left.abort(), received: () => received };
}

const call = (path = "/x") => world.call("echo", path);

beforeAll(async () => {
  world = await World.start();
  const { index, ...code } = await artifact("echo");
  const mounts = [
    { path: "/", timeoutMs: 60_000, concurrency: 5 },
    { path: "/short", timeoutMs: 1_000, concurrency: 5 },
  ];
  const withMount = { ...code, index: { ...index, service: { ...index.service, mounts } } };
  await world.deploy("echo", withMount, { settings: { place: WorkerPlace.REMOTE } });
  await world.until("echo", ({ statusReason }) => statusReason.includes("waits for a worker"));
  const fields = { access: ["worker"], deployments: ["echo"] };
  token = (await world.platform.createToken(world.cookie, fields)).value;
});
afterEach(async () => {
  for (const worker of workers.splice(0)) {
    worker.send({ case: "draining", value: { reason: "the test is over" } });
    // The node ends it when it is idle.
    await worker.ended;
    await worker[Symbol.asyncDispose]();
  }
});
afterAll(() => world[Symbol.asyncDispose]());

it("a worker answers requests over a connection that it was asked for, and keeps it", async () => {
  const worker = await joined();
  const first = call("/x?y=1");
  const opened = tunnel(worker, { id: await asked(worker) });
  await expect.poll(opened.received).toMatch(/^GET \/x\?y=1 HTTP\/1\.1\r\n[\s\S]*\r\n\r\n$/);
  opened.say(ANSWER);
  expect(await first).toMatchObject({ status: 200, text: "hello" });
  const second = call("/z");
  await expect.poll(opened.received).toMatch(/GET \/z /);
  opened.say(ANSWER);
  expect(await second).toMatchObject({ status: 200, text: "hello" });
  opened.said.end();
  expect(await opened.ended).toBeUndefined();
});

it("a worker that does not say that it serves mounted servers gets none of their requests", async () => {
  const worker = await joined([]);
  expect(reasonOf(await call())).toBe("NO_MATCHING_WORKER");
  const answer = world.call("echo", "/say", { body: { text: "a" } });
  const { id } = await worker.take();
  worker.results(json(id, "from afar"));
  expect((await answer).text).toBe("from afar");
  const unasked = tunnel(worker, { id: 1n });
  expect((await unasked.ended)?.code).toBe(Code.NotFound);
});

it("connections that nobody asked for are refused, however many, and nobody else notices", async () => {
  const worker = await joined();
  const other = await newWorker().register({ features: ["mounts"] });
  const unasked = Array.from({ length: 1_000 }, (_, number) =>
    tunnel(worker, { id: BigInt(number + 10) }),
  );
  const codes = await Promise.all(unasked.map(async ({ ended }) => (await ended)?.code));
  expect(new Set(codes)).toEqual(new Set([Code.NotFound]));
  const answer = call();
  const id = await asked(worker);
  // One of its own deployment, which was not asked.
  expect((await tunnel(other, { id }).ended)?.code).toBe(Code.NotFound);
  const stranger = tunnel(other, { id, session: `${worker.session}x` });
  expect((await stranger.ended)?.code).toBe(Code.Aborted);
  const theirs = await world.platform.createToken(world.cookie, {
    access: ["worker"],
    deployments: ["echo"],
  });
  // With another token.
  const thief = tunnel(newWorker(theirs.value), { id, session: worker.session });
  expect((await thief.ended)?.code).toBe(Code.Aborted);
  const opened = tunnel(worker, { id });
  const again = tunnel(worker, { id });
  const codesOfBoth = await Promise.race([opened.ended, again.ended]);
  expect(codesOfBoth?.code).toBe(Code.NotFound);
  for (const each of [opened, again]) {
    each.say(ANSWER);
  }
  expect((await answer).status).toBe(200);
});

it("a connection without a header, or with two, is refused", async () => {
  const worker = await joined();
  const headless = tunnel(worker);
  headless.say("GET");
  expect((await headless.ended)?.code).toBe(Code.InvalidArgument);
  const answer = call();
  const twice = tunnel(worker, { id: await asked(worker) });
  twice.said.send({ header: { session: worker.session, id: 1n } });
  expect((await twice.ended)?.code).toBe(Code.InvalidArgument);
  expect([(await answer).status, reasonOf(await answer)]).toEqual([503, "WORKER_LOST"]);
});

it("a connection that brings too much at once, or no HTTP, fails its own request", async () => {
  const worker = await joined();
  const first = call();
  const id = await asked(worker);
  const large = tunnel(worker, { id });
  large.say("x".repeat(64 * KIBIBYTE + 1));
  expect((await large.ended)?.code).toBe(Code.InvalidArgument);
  expect(reasonOf(await first)).toBe("WORKER_LOST");
  const second = call();
  tunnel(worker, { id: await asked(worker, id) }).say("no answer at all\r\n\r\n");
  expect([(await second).status, reasonOf(await second)]).toEqual([500, "CALL_FAILED"]);
});

it("a connection that does not come fails its request after 10 s", async () => {
  const worker = await joined();
  const answer = call();
  const id = await asked(worker);
  expect([(await answer).status, reasonOf(await answer)]).toEqual([503, "WORKER_LOST"]);
  expect((await tunnel(worker, { id }).ended)?.code).toBe(Code.NotFound);
});

it("a worker that is cut off loses its requests at once, and the slots are free", async () => {
  const worker = await joined();
  const answers = Array.from({ length: 5 }, () => call());
  const opened = tunnel(worker, { id: await asked(worker) });
  await expect.poll(opened.received).toMatch(/^GET/);
  await worker.cut();
  for (const answer of await Promise.all(answers)) {
    expect([answer.status, reasonOf(answer)]).toEqual([503, "WORKER_LOST"]);
  }
  await worker.register({ features: ["mounts"], resumeSession: worker.session });
  await worker.open({ "/": 5 });
  const again = call();
  tunnel(worker, { id: await asked(worker) }).say(ANSWER);
  expect((await again).status).toBe(200);
});

it("a worker that does not read is told of the end of a connection on its stream", async () => {
  const worker = await joined();
  const { port } = new URL(world.platform.url);
  const sent = request({
    ...{ port, host: "127.0.0.1", path: "/short", method: "POST", agent: false },
    headers: { host: `echo.acme.apps.localhost:${port}` },
  });
  sent.on("error", () => {});
  sent.write(randomBytes(1024 * KIBIBYTE));
  const id = await asked(worker);
  const said = new SendQueue<Said>();
  said.send({ header: { session: worker.session, id } });
  const left = new AbortController();
  const unread = worker.client.tunnel(said, { signal: left.signal })[Symbol.asyncIterator]();
  await unread.next();
  const [res] = await once(sent, "response");
  expect(res.statusCode).toBe(504);
  await worker.until(({ message }) => message.case === "disconnect" && message.value.id === id);
  sent.destroy();
  left.abort();
  await unread.next().catch(() => {});
  const answer = call();
  tunnel(worker, { id: await asked(worker, id) }).say(ANSWER);
  expect((await answer).status).toBe(200);
});

it("connections end with the token of the worker", async () => {
  const made = await world.platform.createToken(world.cookie, {
    access: ["worker"],
    deployments: ["echo"],
  });
  const worker = await newWorker(made.value).register({ features: ["mounts"] });
  await worker.open({ "/": 5 });
  const answer = call();
  const opened = tunnel(worker, { id: await asked(worker) });
  await expect.poll(opened.received).toMatch(/^GET/);
  await world.client.tokens.deleteToken({ tokenId: made.id });
  expect((await opened.ended)?.code).toBe(Code.Unauthenticated);
  expect(reasonOf(await answer)).toBe("WORKER_LOST");
});
