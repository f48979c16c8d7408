import { describe, expect, it } from "vitest";
import type { EndpointLoad } from "../../src/pool/demand.ts";
import {
  type DecisionFacts,
  decide,
  evicted,
  firstState,
  type ScalerState,
} from "../../src/pool/scaler.ts";

const idle: EndpointLoad = {
  name: "work",
  kind: "task" as const,
  concurrency: 1,
  batchSize: 1,
  running: 0,
  waiting: 0,
  due: 0,
  started: 0,
  meanRunMs: 5_000,
};

/** A second as queue time, and all workers here. */
const FACTS = { queueTimeMs: 1_000, ready: 1, joined: 0 };

type Options = { readonly min: number; readonly max: number } & Partial<DecisionFacts>;

/** Decides every second, as a node does. */
class Node {
  nowMs = 1_000;
  workers: number;
  #state: ScalerState;
  readonly #options: Options;

  constructor(workers: number, options: Options) {
    this.workers = workers;
    this.#state = firstState(workers, this.nowMs);
    this.#options = options;
  }

  run(seconds: number, load: Partial<EndpointLoad>, ...others: EndpointLoad[]): number {
    for (let second = 0; second < seconds; second++) {
      this.nowMs += 1_000;
      const endpoints = [{ ...idle, ...load }, ...others];
      const facts = { ...FACTS, ...this.#options, nowMs: this.nowMs };
      ({ workers: this.workers, state: this.#state } = decide(this.#state, endpoints, facts));
    }
    return this.workers;
  }
}

describe("the number of workers", () => {
  it("rises at once to what runs and waits, and no further than allowed", () => {
    const node = new Node(1, { min: 1, max: 8 });
    expect(node.run(1, { running: 1, due: 3 })).toBe(4);
    expect(node.run(1, { running: 4, due: 300 })).toBe(8);
  });

  it("has a slot for each caller who waits for a server that takes tasks, too", () => {
    expect(new Node(1, { min: 1, max: 8 }).run(1, { running: 1, waiting: 3 })).toBe(4);
  });

  it.each([
    // Each slot starts three within 5 s: at once, and after 2 and 4 s.
    { due: 1_000, running: 0, meanRunMs: 2_000, queueTimeMs: 5_000, workers: 334 },
    { due: 9, running: 3, meanRunMs: 2_000, queueTimeMs: 5_000, workers: 4 },
    { due: 9, running: 3, meanRunMs: 2_000, queueTimeMs: 60_000, workers: 3 },
    // None of those that run has to end in time.
    { due: 4, running: 3, meanRunMs: 60_000, queueTimeMs: 5_000, workers: 7 },
    { due: 4, running: 3, meanRunMs: 2_000, queueTimeMs: 0, workers: 7 },
    { due: 4, running: 0, meanRunMs: 0, queueTimeMs: 0, workers: 4 },
  ])(
    "lets $due tasks of $meanRunMs ms start within $queueTimeMs ms while $running run: $workers",
    ({ workers, queueTimeMs, ...load }) => {
      expect(new Node(0, { min: 0, max: 1_000, queueTimeMs }).run(1, load)).toBe(workers);
    },
  );

  it("leaves an endpoint to workers that run it and not all others", () => {
    const load = { due: 6, running: 0, meanRunMs: 5_000, helpers: 4 };
    const other = { ...idle, name: "other", due: 3 };
    expect(new Node(0, { min: 0, max: 8 }).run(1, load)).toBe(2);
    expect(new Node(0, { min: 0, max: 8 }).run(1, load, other)).toBe(3);
    expect(new Node(1, { min: 1, max: 8 }).run(1, { ...load, helpers: 9 })).toBe(1);
  });

  it("no more than doubles while it is not known how long tasks run", () => {
    const unknown = { due: 100, meanRunMs: undefined };
    expect(new Node(0, { min: 0, max: 64, ready: 0 }).run(5, unknown)).toBe(1);
    expect(new Node(1, { min: 0, max: 64, ready: 1 }).run(5, { ...unknown, running: 1 })).toBe(2);
    expect(new Node(4, { min: 0, max: 64, ready: 4 }).run(5, { ...unknown, running: 4 })).toBe(8);
    expect(new Node(4, { min: 0, max: 64, ready: 4 }).run(5, { ...unknown, due: 1 })).toBe(4);
  });

  it("counts a batch of tasks as one run", () => {
    const node = new Node(0, { min: 0, max: 64 });
    expect(node.run(1, { due: 33, batchSize: 16 })).toBe(3);
  });

  it("is what tasks need that keep coming, however short their queue is", () => {
    const node = new Node(1, { min: 1, max: 64, queueTimeMs: 5_000 });
    for (let second = 1; second < 60; second++) {
      node.run(1, { running: 1, started: second * 10, meanRunMs: 500 });
    }
    expect(node.workers).toBe(5);
  });

  it("takes no burst of long tasks for a rate, and forgets it when it is over", () => {
    const node = new Node(0, { min: 0, max: 64 });
    expect(node.run(1, { due: 2, meanRunMs: 7_200_000 })).toBe(2);
    expect(node.run(7_200, { running: 2, started: 2, meanRunMs: 7_200_000 })).toBe(2);
    expect(node.run(301, { started: 2, meanRunMs: 7_200_000 })).toBe(0);
  });

  it("has workers on other machines among them, and starts what they leave", () => {
    const facts = { ...FACTS, min: 1, max: 8, nowMs: 1 };
    const load = [{ ...idle, due: 5 }];
    expect(decide(firstState(0, 0), load, { ...facts, joined: 2 })).toMatchObject({
      workers: 5,
      local: 3,
    });
    expect(decide(firstState(0, 0), [idle], { ...facts, joined: 4 })).toMatchObject({
      workers: 1,
      local: 0,
    });
  });

  it("counts slots, so that an endpoint that runs many at a time needs fewer", () => {
    const calls = { kind: "api" as const, concurrency: 10, waiting: 21 };
    expect(new Node(1, { min: 1, max: 8 }).run(1, calls)).toBe(3);
  });

  it("follows the endpoint that needs most", () => {
    const other = { ...idle, name: "other", kind: "api" as const, waiting: 5 };
    expect(new Node(1, { min: 1, max: 8 }).run(1, { due: 2 }, other)).toBe(5);
  });

  it("starts no worker for tasks that are through before it is ready", () => {
    const node = new Node(1, { min: 1, max: 8 });
    expect(node.run(1, { running: 1, due: 20, meanRunMs: 10 })).toBe(1);
  });

  it("keeps a fifth of the slots free of calls that last", () => {
    const node = new Node(2, { min: 1, max: 8 });
    const load = { kind: "api" as const, concurrency: 10, running: 19 };
    expect(node.run(1, load)).toBe(2);
    expect(node.run(60, load)).toBe(3);
  });

  it("falls after a minute of less load, one and all that are not needed", () => {
    const node = new Node(1, { min: 1, max: 8 });
    node.run(1, { running: 6 });
    expect(node.run(59, { running: 1 })).toBe(6);
    expect(node.run(60, { running: 1 })).toBe(1);
    expect(node.run(1_000, {})).toBe(1);
  });

  it("does not fall while the load comes back within the minute", () => {
    const node = new Node(1, { min: 1, max: 8 });
    for (let round = 0; round < 10; round++) {
      node.run(1, { running: 4 });
      expect(node.run(50, {})).toBe(4);
    }
  });

  it("falls to none after five minutes without any load, and rises with the first", () => {
    const node = new Node(1, { min: 0, max: 8 });
    expect(node.run(299, {})).toBe(1);
    expect(node.run(2, {})).toBe(0);
    expect(node.run(1_000, {})).toBe(0);
    expect(node.run(1, { due: 1, meanRunMs: undefined })).toBe(1);
    expect(new Node(0, { min: 0, max: 8 }).run(1, { kind: "api", waiting: 1 })).toBe(1);
  });

  it("follows bounds that change", () => {
    const state = firstState(4, 0);
    expect(decide(state, [idle], { ...FACTS, min: 2, max: 3, nowMs: 1 }).workers).toBe(3);
    expect(decide(state, [idle], { ...FACTS, min: 6, max: 9, nowMs: 1 }).workers).toBe(6);
  });

  it("does not keep for its own sake a worker that was never there for want of room, or evicted", () => {
    const bounds = { ...FACTS, min: 0, max: 4 };
    const asked = decide(firstState(1, 0), [{ ...idle, running: 3 }], { ...bounds, nowMs: 1_000 });
    expect(asked.workers).toBe(3);
    const rests = { ...bounds, nowMs: 2_000 };
    expect(decide(asked.state, [idle], rests).workers).toBe(3);
    expect(decide(asked.state, [idle], { ...rests, startable: 2 }).workers).toBe(2);
    expect(decide(evicted(asked.state), [idle], rests).workers).toBe(2);
    const running = [{ ...idle, running: 3 }];
    expect(decide(asked.state, running, { ...rests, startable: 2 }).workers).toBe(3);
  });

  it("asks for no worker that was evicted because calls or tasks came before", () => {
    const rests = { ...FACTS, min: 0, max: 4, nowMs: 2_000, startable: 0 };
    const called: EndpointLoad = { ...idle, name: "say", kind: "api" };
    const before = [
      { ...called, running: 1 },
      { ...idle, due: 9 },
    ];
    const { state } = decide(firstState(1, 0), before, { ...rests, nowMs: 1_000 });
    const after = [called, { ...idle, started: 9 }];
    expect(decide(state, after, rests).workers).toBeGreaterThan(0);
    expect(decide(evicted(state), after, rests).workers).toBe(0);
    expect(decide(evicted(state), [{ ...called, waiting: 1 }, idle], rests).workers).toBe(1);
  });
});
