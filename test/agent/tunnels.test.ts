/** Connections to mounted servers at an agent, with a node that the test plays. */
import { fileURLToPath } from "node:url";
import { beforeAll, expect, test } from "vitest";
import { buildArtifact } from "../../src/artifacts/build.ts";
import type { BuiltArtifact } from "../../src/artifacts/build-options.ts";
import { TestAgent } from "./agents.ts";
import { FakeNode, type FakeTunnel } from "./fake-node.ts";

const SERVICE = fileURLToPath(new URL("../fixtures/services/serve/mounts.ts", import.meta.url));
const SILENCE_MS = 3_000;
/** The share of the silence after which calls are aborted. */
const ABORTING_AFTER = 10 / 15;

let mounted: BuiltArtifact;

beforeAll(async () => {
  mounted = await buildArtifact(SERVICE);
});

/** A worker that is ready. */
async function joined(node: FakeNode): Promise<void> {
  await expect.poll(() => node.streams.at(-1)?.slots["/plain"] ?? 0).toBeGreaterThan(0);
}

async function connected(node: FakeNode, id: bigint, mount = "/plain"): Promise<FakeTunnel> {
  node.stream.send({ message: { case: "connect", value: { id, mount } } });
  await expect.poll(() => node.tunnels.has(id)).toBe(true);
  return node.tunnels.get(id) as FakeTunnel;
}

function ask(tunnel: FakeTunnel, path: string): void {
  tunnel.said.send({ data: Buffer.from(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`) });
}

test("an agent says that it serves mounted servers, and as many requests as it has connections for", async () => {
  await using node = await FakeNode.start(mounted);
  await using _agent = new TestAgent(node.url);
  await joined(node);
  expect(node.registered[0]?.features).toContain("mounts");
  const each = Math.floor(200 / (mounted.index.service.mounts?.length ?? 0));
  expect(node.stream.slots).toMatchObject({ "/": each, "/app": each, "/plain": 10 });
});

test("an agent connects its node with a mounted server, as often as it is asked", async () => {
  await using node = await FakeNode.start(mounted);
  await using _agent = new TestAgent(node.url);
  await joined(node);
  const [first, second] = [await connected(node, 1n), await connected(node, 2n, "/app")];
  ask(first, "/plain/x");
  ask(second, "/app/y");
  await expect.poll(() => first.received).toMatch(/^HTTP\/1.1 200 OK\r\n[\s\S]*GET \/plain\/x/);
  await expect.poll(() => second.received).toMatch(/app \/app\/y/);
  ask(first, "/plain/z");
  await expect.poll(() => first.received).toMatch(/GET \/plain\/z/);
  first.said.send({ end: true });
  await expect.poll(() => first.hasEnded).toBe(true);
  expect(second.hasEnded).toBe(false);
});

test("an agent ends a connection for a server that it does not have", async () => {
  await using node = await FakeNode.start(mounted);
  await using _agent = new TestAgent(node.url);
  await joined(node);
  const none = await connected(node, 1n, "/none");
  await expect.poll(() => none.hasEnded).toBe(true);
  ask(await connected(node, 2n), "/plain/x");
  await expect.poll(() => node.tunnels.get(2n)?.received).toMatch(/GET \/plain\/x/);
});

test("an agent ends a connection that its node has left, whatever is not read of it", async () => {
  await using node = await FakeNode.start(mounted);
  await using _agent = new TestAgent(node.url);
  await joined(node);
  const tunnel = await connected(node, 1n);
  ask(tunnel, "/plain/endless");
  await expect.poll(() => tunnel.received).toMatch(/\./);
  node.stream.send({ message: { case: "disconnect", value: { id: 1n } } });
  await expect.poll(() => tunnel.hasEnded).toBe(true);
});

test("an agent that is not answered ends its connections before it would abort its calls", async () => {
  await using node = await FakeNode.start(mounted);
  node.silenceMs = SILENCE_MS;
  await using _agent = new TestAgent(node.url);
  await joined(node);
  const tunnel = await connected(node, 1n);
  ask(tunnel, "/plain/endless");
  await expect.poll(() => tunnel.received).toMatch(/\./);
  const sinceMs = performance.now();
  node.answersHeartbeats = false;
  await expect.poll(() => tunnel.hasEnded, { interval: 10 }).toBe(true);
  // The last answer may have been one interval ago, and this one begins with the next heartbeat.
  expect(performance.now() - sinceMs).toBeLessThan(SILENCE_MS * ABORTING_AFTER);
});

test("an agent whose stream breaks ends its connections, and has others over the next one", async () => {
  await using node = await FakeNode.start(mounted);
  await using _agent = new TestAgent(node.url);
  await joined(node);
  const before = await connected(node, 1n);
  ask(before, "/plain/endless");
  node.stream.end();
  await expect.poll(() => before.hasEnded).toBe(true);
  await expect.poll(() => node.streams.length).toBe(2);
  await joined(node);
  ask(await connected(node, 2n), "/plain/x");
  await expect.poll(() => node.tunnels.get(2n)?.received).toMatch(/GET \/plain\/x/);
});
