/** The agent with a node that the test plays. */
import { fileURLToPath } from "node:url";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { buildArtifact } from "../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../src/artifacts/build-options.ts";
import { readWorkerConfig } from "../../src/config/worker.ts";
import { artifact } from "../e2e/hosting/world.ts";
import { freePort } from "../free-port.ts";
import { TestAgent } from "./agents.ts";
import { FakeNode, type FakeStream, refusal } from "./fake-node.ts";

const MOUNTS = fileURLToPath(new URL("../fixtures/services/serve/mounts.ts", import.meta.url));

let echo: BuiltArtifact;

beforeAll(async () => {
  echo = await artifact("echo");
});

/** A worker that is ready. */
async function joined(node: FakeNode): Promise<void> {
  await expect.poll(() => node.streams.at(-1)?.slots.work ?? 0).toBeGreaterThan(0);
}

function work(id: number, forMs = 0) {
  return {
    ...{ id: BigInt(id), endpoint: "work", taskId: `task-${id}`, attempt: 1, trace: "" },
    json: JSON.stringify({ text: `number ${id}`, forMs }),
    timeLeft: durationFromMs(60_000),
  };
}

describe("an agent", () => {
  test("runs what it is assigned, with the secrets that the node sent", async () => {
    await using node = await FakeNode.start(echo);
    await using _agent = new TestAgent(node.url);
    await joined(node);
    const variable = { ...work(1), endpoint: "variable", json: '{"name":"SECRET_OF_TEST"}' };
    node.stream.assign(variable, work(2));
    await expect.poll(() => node.stream.results.length).toBe(2);
    const ends = Object.fromEntries(node.stream.results.map(({ id, end }) => [id, end.value]));
    expect(ends).toEqual({ 1: '"from the node"', 2: '"one number 2"' });
  });

  test("says that a call has arrived which does not end at once", async () => {
    await using node = await FakeNode.start(echo);
    await using _agent = new TestAgent(node.url);
    await joined(node);
    node.stream.assign(work(1), work(2, 3_000));
    await expect.poll(() => node.stream.all("accepted").flatMap(({ ids }) => ids)).toContain(2n);
  });

  test("says of many calls that they have arrived in messages that the node takes", async () => {
    await using node = await FakeNode.start(echo);
    await using _agent = new TestAgent(node.url);
    await joined(node);
    const calls = Array.from({ length: 1_100 }, (_, at) => work(at + 1, 3_000));
    node.stream.assign(...calls);
    await expect
      .poll(() => node.stream.all("accepted").flatMap(({ ids }) => ids).length, { timeout: 10_000 })
      .toBe(1_100);
    const longest = Math.max(...node.stream.all("accepted").map(({ ids }) => ids.length));
    expect(longest).toBeLessThanOrEqual(1_000);
  });

  test("reports output, and metrics before the result that they belong to", async () => {
    await using node = await FakeNode.start(echo);
    await using _agent = new TestAgent(node.url);
    await joined(node);
    node.stream.assign({ ...work(1), endpoint: "say", json: '{"text":"hello"}' });
    await expect.poll(() => node.stream.results.length).toBe(1);
    const { afterReport = 0n } = node.stream.all("results")[0] ?? {};
    await expect.poll(() => node.lines).toContain("said hello");
    const metrics = node.reports.filter(({ metricsJson }) => metricsJson !== "");
    expect(metrics.every(({ sequence }) => sequence <= afterReport)).toBe(true);
    expect(JSON.parse(metrics[0]?.metricsJson ?? "{}")).toEqual({
      changes: [{ metric: "said_letters_total", endpoint: "say", labels: [], value: 5 }],
      dropped: [],
    });
  });

  test("reports what mounted servers of its service expose", async () => {
    await using node = await FakeNode.start(await buildArtifact(MOUNTS));
    await using _agent = new TestAgent(node.url);
    const exposed = (): unknown[] =>
      node.reports.flatMap(({ metricsJson }) =>
        metricsJson === "" ? [] : (JSON.parse(metricsJson).exposed ?? []),
      );
    await expect.poll(exposed).toEqual([
      {
        ...{ name: "plain_requests_total", kind: "counter", help: "" },
        changes: [{ labels: ["exported_job", "x"], value: 0 }],
      },
    ]);
  });

  test("sends a result again until it is acknowledged", async () => {
    await using node = await FakeNode.start(echo);
    await using _agent = new TestAgent(node.url);
    await joined(node);
    node.acknowledges = false;
    node.stream.assign(work(1));
    await expect.poll(() => node.stream.results.length).toBe(1);
    node.cut();
    await expect.poll(() => node.streams.length).toBe(2);
    expect(node.registered[1]).toMatchObject({
      resumeSession: "session-1",
      held: [{ id: 1n, taskId: "task-1", attempt: 1, endpoint: "work" }],
      lastCall: 1n,
    });
    await expect.poll(() => node.stream.results.map(({ id }) => id)).toEqual([1n]);
    node.stream.send({ message: { case: "resultsAck", value: { ids: [1n], stale: [] } } });
    node.stream.assign(work(2));
    await expect.poll(() => node.stream.results.length).toBe(2);
    node.cut();
    await expect.poll(() => node.registered.at(-1)?.held.map(({ id }) => id)).toEqual([2n]);
    node.acknowledges = true;
    await expect.poll(() => node.stream.results.map(({ id }) => id)).toEqual([2n]);
    // Also of a call that has ended meanwhile.
    node.cut();
    await expect.poll(() => node.registered.at(3)?.lastCall).toBe(2n);
  });

  test("goes on with a call over a broken connection, and drops what another runs", async () => {
    await using node = await FakeNode.start(echo);
    await using _agent = new TestAgent(node.url);
    await joined(node);
    node.stream.assign(work(1, 60_000), work(2, 300));
    await expect.poll(() => node.stream.all("accepted").length).toBeGreaterThan(0);
    node.keep = () => [2n];
    node.cut();
    await expect.poll(() => node.streams.length).toBe(2);
    await expect.poll(() => node.stream.results.length).toBe(1);
    expect(node.stream.results[0]).toMatchObject({ id: 2n, end: { value: '"one number 2"' } });
  });

  test("kills what runs and registers anew when its session has expired", async () => {
    await using node = await FakeNode.start(echo);
    await using _agent = new TestAgent(node.url);
    await joined(node);
    node.stream.assign(work(1, 60_000));
    await expect.poll(() => node.stream.all("accepted").length).toBe(1);
    node.stream.end(refusal(Code.Aborted, "WORKER_SESSION_EXPIRED", "it is over"));
    await expect.poll(() => node.streams.length).toBe(2);
    expect(node.registered[1]).toMatchObject({ resumeSession: "", held: [] });
    await joined(node);
    node.stream.assign(work(1));
    await expect.poll(() => node.stream.results.length).toBe(1);
  });

  test("is over when heartbeats are not answered: it says nothing of what ran, and joins anew", async () => {
    await using node = await FakeNode.start(echo);
    node.silenceMs = 3_000;
    await using _agent = new TestAgent(node.url);
    await joined(node);
    node.stream.assign(work(1, 60_000));
    await expect.poll(() => node.stream.all("accepted").length).toBe(1);
    node.answersHeartbeats = false;
    node.onRegister = ({ resumeSession }) => {
      if (resumeSession !== "") {
        throw refusal(Code.Unavailable, "SHUTTING_DOWN", "not now");
      }
      node.answersHeartbeats = true;
    };
    await expect
      .poll(() => node.registered.at(-1)?.resumeSession === "" && node.streams.length)
      .toBe(2);
    expect(node.registered.some(({ resumeSession }) => resumeSession !== "")).toBe(true);
    expect(node.streams.flatMap(({ results }) => results)).toEqual([]);
    await joined(node);
  });

  test("finishes its calls when it is asked to leave", async () => {
    await using node = await FakeNode.start(echo);
    await using agent = new TestAgent(node.url);
    await joined(node);
    const { stream } = node;
    stream.assign(work(1, 500));
    await expect.poll(() => stream.all("accepted").length).toBe(1);
    agent.leave();
    await expect.poll(() => stream.all("draining").length).toBeGreaterThan(0);
    await expect.poll(() => stream.results.length).toBe(1);
    expect(stream.results[0]?.end.value).toBe('"one number 1"');
    await agent.done;
    expect(stream.slots).toEqual({});
  });

  test("registers anew for another revision at once, and finishes its calls beside it", async () => {
    await using node = await FakeNode.start(echo);
    await using _agent = new TestAgent(node.url);
    await joined(node);
    const drained = (): FakeStream => {
      const { stream } = node;
      const id = node.streams.length;
      stream.assign(work(id, 600_000));
      const drain = { registerAgain: true, reason: "there is another revision" };
      stream.send({ message: { case: "drain", value: drain } });
      return stream;
    };
    const first = drained();
    await expect.poll(() => node.streams.length).toBe(2);
    expect(node.registered[1]?.resumeSession).toBe("");
    await joined(node);
    expect(first.results).toEqual([]);
    // A third one waits for the first, so that no worker has more than two processes.
    const second = drained();
    await expect.poll(() => second.all("draining").length).toBeGreaterThan(0);
    expect(node.registered).toHaveLength(2);
    const abort = { id: 1n, reason: "cancelled" };
    first.send({ message: { case: "abort", value: abort } });
    await expect.poll(() => first.results.map(({ id }) => id)).toEqual([1n]);
    await expect.poll(() => node.streams.length).toBe(3);
    await joined(node);
    second.send({ message: { case: "abort", value: { ...abort, id: 2n } } });
    await expect.poll(() => second.results.map(({ id }) => id)).toEqual([2n]);
  });
});

describe("the artifact", () => {
  test("is read on from where the connection broke", async () => {
    await using node = await FakeNode.start(echo);
    let broken = false;
    node.onChunk = (chunk, offset) => {
      if (!broken && offset === 3_000) {
        broken = true;
        throw refusal(Code.Unavailable, "STORAGE_UNAVAILABLE", "a moment");
      }
      return chunk;
    };
    await using _agent = new TestAgent(node.url);
    await joined(node);
    expect(node.offsets).toContain(3_000n);
  });

  test("is refused when a file is not what its digest says, and fetched again", async () => {
    await using node = await FakeNode.start(echo);
    let forged = true;
    node.onChunk = (chunk) => {
      if (forged) {
        return Buffer.from(chunk).fill(32);
      }
      return chunk;
    };
    await using _agent = new TestAgent(node.url);
    await expect.poll(() => node.lines.join("\n")).toMatch(/it was changed or damaged/);
    expect(node.stream.slots).toEqual({});
    forged = false;
    await joined(node);
  });
});

describe("a platform", () => {
  test("that is not there is asked again until it is", async () => {
    const port = await freePort();
    await using _agent = new TestAgent(`http://127.0.0.1:${port}`);
    await using node = await FakeNode.start(echo, port);
    await joined(node);
  });

  test.each([
    ["of another deployment", Code.PermissionDenied, "ACCESS_DENIED", "the token is not for it"],
    ["that is not valid", Code.Unauthenticated, "TOKEN_INVALID", "the token is not valid"],
    ["for nothing there", Code.NotFound, "DEPLOYMENT_NOT_FOUND", "there is no deployment echo"],
    ["of an old agent", Code.FailedPrecondition, "WORKER_INCOMPATIBLE", "update the older"],
  ])("refuses a token %s, and the agent ends", async (_name, code, reason, message) => {
    await using node = await FakeNode.start(echo);
    node.onRegister = () => {
      throw refusal(code, reason, message);
    };
    await using agent = new TestAgent(node.url);
    await expect(agent.done).rejects.toThrow(message);
    expect(node.registered).toHaveLength(1);
  });

  test("without TLS has to be on this machine", () => {
    const read = (join: string) =>
      readWorkerConfig({ join, deployment: "echo" }, { TESSERA_WORKER_TOKEN: "a-token" }).config;
    expect(() => read("http://tessera.example.com")).toThrow(/must be an https:\/\/ address/);
    expect(read("http://localhost:3000/").url).toBe("http://localhost:3000");
    expect(read("https://tessera.example.com/").url).toBe("https://tessera.example.com");
  });
});

describe("an agent on a machine that ends", () => {
  /** The longest timeout of an endpoint of `echo`, in milliseconds. */
  const longestMs = () =>
    Math.max(...echo.index.service.endpoints.map(({ timeoutMs }) => timeoutMs));

  const inMs = (ms: number) => ({ until: new Date(Date.now() + ms).toISOString() });

  test("does not begin where its calls may last longer than the machine", async () => {
    await using node = await FakeNode.start(echo);
    const agent = new TestAgent(node.url, inMs(longestMs() + 29_000));
    await expect(agent.done).rejects.toThrow(/may last longer than this machine/);
    await agent[Symbol.asyncDispose]();
  });
});
