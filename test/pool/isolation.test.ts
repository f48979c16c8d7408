/** Whole workers for suspects, by a clock of the test. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Capacity } from "../../src/pool/calls/execution.ts";
import { Isolation } from "../../src/pool/isolation.ts";
import type { Worker } from "../../src/pool/worker.ts";
import type { EndpointManifest } from "../../src/protocol/manifest.ts";

const ENDPOINT = { name: "work", concurrency: 4 } as EndpointManifest;

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A worker whose process may be away for a while, as that of a machine that joined. */
function workerOf() {
  const capacity = new Capacity();
  const worker = {
    ...{ id: "w", revision: 1, capacity, loaded: true, isBlocked: false, isDraining: false },
    get busyness() {
      return capacity.taken(ENDPOINT);
    },
    runs: () => true,
    freeSlots: () => (worker.loaded ? capacity.free(ENDPOINT) : 0),
    release: (endpoint: EndpointManifest) => capacity.giveBack(endpoint),
  };
  return worker;
}

function isolationOf(...workers: object[]): Isolation {
  return new Isolation({
    workers: () => workers as Worker[],
    size: () => 0,
    isStarting: () => false,
    onChange: () => {},
  });
}

test("a worker whose process dies while it is emptied takes others when it is back", () => {
  const [worker, other] = [workerOf(), workerOf()];
  using isolation = isolationOf(worker, other);
  const asker = {};
  worker.capacity.take(ENDPOINT);
  other.capacity.take(ENDPOINT);
  other.capacity.take(ENDPOINT);
  isolation.reserve(ENDPOINT, true, asker);
  vi.advanceTimersByTime(3_001);
  isolation.reserve(ENDPOINT, true, asker);
  expect(worker.capacity.isClosed).toBe(true);
  worker.loaded = false;
  worker.capacity.giveBack(ENDPOINT);
  isolation.reserve(ENDPOINT, true, asker);
  isolation.settled(asker);
  expect([worker, other].map(({ capacity }) => capacity.isClosed)).toEqual([false, false]);
});

test("a worker is emptied until all who ask for one are settled", () => {
  const worker = workerOf();
  using isolation = isolationOf(worker);
  const [tasks, calls] = [{}, {}];
  worker.capacity.take(ENDPOINT);
  isolation.reserve(ENDPOINT, true, tasks);
  isolation.reserve(ENDPOINT, true, calls);
  vi.advanceTimersByTime(3_001);
  isolation.reserve(ENDPOINT, true, tasks);
  isolation.settled(tasks);
  expect(worker.capacity.isClosed).toBe(true);
  isolation.settled(calls);
  expect(worker.capacity.isClosed).toBe(false);
});
