import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { type Principal, setPrincipal } from "../../../../src/auth/principal.ts";
import { type Problem, problem } from "../../../../src/errors.ts";
import { CallValues } from "../../../../src/server/rpc/engine/call-context.ts";
import { Standings } from "../../../../src/server/rpc/engine/standing.ts";

const person = { kind: "session", expiresAtMs: 1_000 } as Principal;

/** A stream, and the reasons that it was ended with. */
function streamOf(ask: () => Promise<void>) {
  const values = setPrincipal(new CallValues(), person);
  const ends: Problem[] = [];
  return { values, ask, ends, end: (found: Problem) => void ends.push(found) };
}

/** Asks of all streams, as many times as one of them has been asked. */
async function asked(standings: Standings, times: number): Promise<void> {
  let count = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = standings.add({
    values: new CallValues(),
    async ask() {
      count += 1;
      if (count === times) {
        setImmediate(resolve);
      }
    },
    end: () => {},
  });
  await promise;
  stop();
}

it("a stream ends with what its caller would be told, and what was hidden before is denied", async () => {
  const standings = new Standings({ intervalMs: 1, now: () => 0 });
  const streams = (["TOKEN_INVALID", "ADMIN_REQUIRED", "DEPLOYMENT_NOT_FOUND"] as const).map(
    (reason) => streamOf(async () => Promise.reject(problem(reason, "no"))),
  );
  const stops = streams.map((stream) => standings.add(stream));
  await asked(standings, 2);
  expect(streams.map(({ ends }) => ends[0]?.reason)).toEqual([
    ...["TOKEN_INVALID", "ADMIN_REQUIRED", "ACCESS_DENIED"],
  ]);
  for (const stop of stops) {
    stop();
  }
  expect(standings.size).toBe(0);
});

it("a passing failure ends no stream, unless its credential has expired meanwhile", async () => {
  let nowMs = 0;
  const standings = new Standings({ intervalMs: 1, now: () => nowMs });
  const failing = streamOf(async () =>
    Promise.reject(problem("STORAGE_UNAVAILABLE", "the database does not answer")),
  );
  const hanging = streamOf(() => new Promise(() => {}));
  standings.add(failing);
  standings.add(hanging);
  await asked(standings, 3);
  expect([failing.ends, hanging.ends]).toEqual([[], []]);
  nowMs = 1_000;
  await asked(standings, 3);
  expect([failing.ends[0]?.reason, hanging.ends[0]?.reason]).toEqual([
    ...["TOKEN_INVALID", "TOKEN_INVALID"],
  ]);
});

it("many streams leave turns to other work", async () => {
  const standings = new Standings({ intervalMs: 20, now: () => 0 });
  let [count, turns] = [0, 0];
  const stops = Array.from({ length: 1_000 }, () =>
    standings.add(
      streamOf(async () => {
        count += 1;
      }),
    ),
  );
  const turn = (): void => {
    turns += count > 0 ? 1 : 0;
    if (count < 1_000) {
      setImmediate(turn);
    }
  };
  turn();
  await asked(standings, 1);
  expect(count).toBe(1_000);
  expect(turns).toBeGreaterThanOrEqual(9);
  for (const stop of stops) {
    stop();
  }
});

it("nothing is asked while there is no stream", async () => {
  const standings = new Standings({ intervalMs: 1 });
  let count = 0;
  const stop = standings.add(
    streamOf(async () => {
      count += 1;
    }),
  );
  stop();
  await sleep(20);
  expect(count).toBe(0);
});

it("streams that all end during a round leave one timer to those that come", async () => {
  const intervalMs = 20;
  const standings = new Standings({ intervalMs, now: () => 0 });
  let stopLast = (): void => {};
  let asks = 0;
  const last = streamOf(async () => {
    asks += 1;
  });
  for (let round = 0; round < 10; round += 1) {
    // More than are asked in one turn of the event loop: all of them leave before the second.
    const left = Promise.withResolvers<void>();
    const stops: (() => void)[] = [];
    const leave = (): void => {
      for (const stop of stops.splice(0)) {
        stop();
      }
      stopLast();
      stopLast = standings.add(last);
      left.resolve();
    };
    for (let index = 0; index < 150; index += 1) {
      stops.push(standings.add(streamOf(async () => void (index === 0 && queueMicrotask(leave)))));
    }
    await left.promise;
    await sleep(1);
  }
  asks = 0;
  await sleep(10 * intervalMs);
  stopLast();
  expect(asks).toBeGreaterThan(0);
  expect(asks).toBeLessThanOrEqual(11);
});

it("callers are asked for as soon as what they may do has changed, also during a round", async () => {
  const standings = new Standings({ intervalMs: 600_000 });
  const answers = Array.from({ length: 2 }, () => Promise.withResolvers<void>());
  let count = 0;
  const stop = standings.add(
    streamOf(async () => {
      answers[count]?.resolve();
      count += 1;
      // A change comes while it is being asked for.
      if (count === 1) {
        standings.hurry();
      }
    }),
  );
  standings.hurry();
  await Promise.all(answers.map(({ promise }) => promise));
  expect(count).toBe(2);
  stop();
  standings.hurry();
  expect(count).toBe(2);
});
