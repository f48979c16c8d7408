import { describe, expect, it } from "vitest";
import {
  decide,
  type EndpointLoad,
  evicted,
  firstState,
  type ScalerState,
} from "../../src/pool/scaler.ts";

const idle: EndpointLoad = {
  name: "work",
  kind: "task" as const,
  concurrency: 1,
  running: 0,
  waiting: 0,
  due: 0,
  meanRunMs: 5_000,
};

/** Decides every second, as a node does. */
class Node {
  nowMs = 1_000;
  workers: number;
  #state: ScalerState;
  readonly #bounds: { readonly min: number; readonly max: number };

  constructor(workers: number, bounds: { readonly min: number; readonly max: number }) {
    this.workers = workers;
    this.#state = firstState(workers, this.nowMs);
    this.#bounds = bounds;
  }

  run(seconds: number, load: Partial<EndpointLoad>, ...others: EndpointLoad[]): number {
    for (let second = 0; second < seconds; second++) {
      this.nowMs += 1_000;
      const endpoints = [{ ...idle, ...load }, ...others];
      const bounds = { ...this.#bounds, nowMs: this.nowMs };
      ({ workers: this.workers, state: this.#state } = decide(this.#state, endpoints, bounds));
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

  it("counts slots, so that an endpoint that runs many at a time needs fewer", () => {
    expect(new Node(1, { min: 1, max: 8 }).run(1, { concurrency: 10, waiting: 21 })).toBe(3);
  });

  it("follows the endpoint that needs most", () => {
    const other = { ...idle, name: "other", waiting: 5 };
    expect(new Node(1, { min: 1, max: 8 }).run(1, { waiting: 2 }, other)).toBe(5);
  });

  it("starts no worker for tasks that are through before it is ready", () => {
    const node = new Node(1, { min: 1, max: 8 });
    expect(node.run(1, { running: 1, due: 20, meanRunMs: 10 })).toBe(2);
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
    expect(node.run(1, { waiting: 1 })).toBe(1);
    expect(node.run(1, { due: 1, meanRunMs: undefined })).toBe(1);
  });

  it("follows bounds that change", () => {
    const state = firstState(4, 0);
    expect(decide(state, [idle], { min: 2, max: 3, nowMs: 1 }).workers).toBe(3);
    expect(decide(state, [idle], { min: 6, max: 9, nowMs: 1 }).workers).toBe(6);
  });

  it("does not keep for its own sake a worker that was never there for want of room, or evicted", () => {
    const bounds = { min: 0, max: 4 };
    const asked = decide(firstState(1, 0), [{ ...idle, running: 3 }], { ...bounds, nowMs: 1_000 });
    expect(asked.workers).toBe(3);
    const rests = { ...bounds, nowMs: 2_000 };
    expect(decide(asked.state, [idle], rests).workers).toBe(3);
    expect(decide(asked.state, [idle], { ...rests, startable: 2 }).workers).toBe(2);
    expect(decide(evicted(asked.state), [idle], rests).workers).toBe(2);
    const running = [{ ...idle, running: 3 }];
    expect(decide(asked.state, running, { ...rests, startable: 2 }).workers).toBe(3);
  });
});
