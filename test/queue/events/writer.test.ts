import { describe, expect, it } from "vitest";
import { AttemptEvents, EventWriter } from "../../../src/queue/events/writer.ts";
import type { NewEvent, Storage } from "../../../src/storage/storage.ts";
import { unavailable } from "../../../src/storage/unavailable.ts";
import { eventLog } from "../../../src/tasks/event.ts";
import { attempt, endAttempt, key, startTask, success } from "../../storage/fixtures.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";

function line(message: string): NewEvent {
  return { timeMs: 1, body: { kind: "log", level: "info", message } };
}

/** A writer on a real storage whose writes wait, or fail, as `before` says. */
async function open(before: (write: number) => Promise<void> | void = () => undefined) {
  const storage = await openSqlite(":memory:");
  const writes: number[] = [];
  const warnings: string[] = [];
  const stored: string[] = [];
  const recording: Pick<Storage, "recordEvents"> = {
    async recordEvents(parameters) {
      writes.push(parameters.events.length);
      await before(writes.length);
      return storage.recordEvents(parameters);
    },
  };
  const log = {
    ...{ debug() {}, info() {}, error() {} },
    warn: (_facts: unknown, message = "") => void warnings.push(message),
  };
  const onStored = (taskId: string) => void stored.push(taskId);
  const writer = new EventWriter({ storage: recording, log, onStored });
  const lines = async (taskId: string) => {
    const history = await storage.getHistory({ ...key(taskId), afterSequence: 0, limit: 10_000 });
    const events = history ? eventLog(history, 0) : [];
    return events.flatMap(({ body }) => (body.kind === "log" ? body.message : []));
  };
  return { storage, writer, writes, warnings, stored, lines };
}

describe("events of running attempts", () => {
  it("of one turn are one write, and those that come during it are the next", async () => {
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const opened = await open((write) => {
      begun.resolve();
      return write === 1 ? held.promise : undefined;
    });
    await using storage = opened.storage;
    const { writer, writes, lines, stored } = opened;
    const [a, b] = [await startTask(storage, "a"), await startTask(storage, "b")].map(
      (of) => new AttemptEvents(of),
    ) as [AttemptEvents, AttemptEvents];
    writer.add(a, line("a1"));
    writer.add(b, line("b1"));
    writer.add(a, line("a2"));
    await begun.promise;
    for (const message of ["b2", "b3", "b4"]) {
      writer.add(b, line(message));
    }
    held.resolve();
    await writer.settled();
    expect(writes).toEqual([3, 3]);
    expect([await lines("a"), await lines("b")]).toEqual([
      ["a1", "a2"],
      ["b1", "b2", "b3", "b4"],
    ]);
    expect(stored).toEqual(["a", "b", "b"]);
  });

  it("that no write has taken are left to the end, which waits for the write under way", async () => {
    const held = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const opened = await open(() => {
      begun.resolve();
      return held.promise;
    });
    await using storage = opened.storage;
    const { writer, lines } = opened;
    const of = new AttemptEvents(await startTask(storage, "a"));
    writer.add(of, line("first"));
    await begun.promise;
    writer.add(of, line("last"));
    const taking = writer.takeRest(of);
    held.resolve();
    const rest = await taking;
    expect(rest).toEqual([line("last")]);
    const ends = [{ attempt: of.attempt, end: success(1), events: rest }];
    await storage.endAttempts({ nowMs: 2, ends });
    await writer.settled();
    expect(await lines("a")).toEqual(["first", "last"]);
  });

  it("wait for a storage that does not answer, in their order, or go with the end", async () => {
    const opened = await open((write) => {
      if (write === 1) {
        throw unavailable(new Error("away"));
      }
    });
    await using storage = opened.storage;
    const { writer, lines, warnings } = opened;
    const [a, b] = [await startTask(storage, "a"), await startTask(storage, "b")].map(
      (of) => new AttemptEvents(of),
    ) as [AttemptEvents, AttemptEvents];
    writer.add(a, line("a1"));
    writer.add(b, line("b1"));
    await new Promise(setImmediate);
    writer.add(a, line("a2"));
    expect(await writer.takeRest(b)).toEqual([line("b1")]);
    await writer.settled();
    expect(await lines("a")).toEqual(["a1", "a2"]);
    expect(await lines("b")).toEqual([]);
    expect(warnings).toEqual(["progress and log lines of tasks could not be stored"]);
  });

  it("of an attempt that has ended are refused with one warning", async () => {
    const opened = await open();
    await using storage = opened.storage;
    const { writer, warnings, writes, lines } = opened;
    const running = await startTask(storage, "a");
    const of = new AttemptEvents(running);
    await endAttempt(storage, running, success(1));
    writer.add(of, line("late"));
    await writer.settled();
    writer.add(of, line("later"));
    await writer.settled();
    expect(writes).toEqual([1]);
    expect(await lines("a")).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining("were refused")]);
  });

  it("that a storage rejects are dropped alone, with a warning", async () => {
    const opened = await open((write) => {
      if (write <= 2) {
        throw new Error("rejected");
      }
    });
    await using storage = opened.storage;
    const { writer, warnings, writes, lines } = opened;
    const [a, b] = [await startTask(storage, "a"), await startTask(storage, "b")].map(
      (of) => new AttemptEvents(of),
    ) as [AttemptEvents, AttemptEvents];
    writer.add(a, line("a1"));
    writer.add(b, line("b1"));
    await writer.settled();
    expect(writes).toEqual([2, 1, 1]);
    expect([await lines("a"), await lines("b")]).toEqual([[], ["b1"]]);
    expect(warnings).toEqual(["progress or log lines were dropped"]);
  });

  it("that wait are bounded: the oldest are dropped, with one warning", async () => {
    const opened = await open(() => {
      throw unavailable(new Error("away"));
    });
    await using _storage = opened.storage;
    const { writer, warnings } = opened;
    const of = new AttemptEvents(attempt("a"));
    for (let number = 0; number < 20; number += 1) {
      writer.add(of, line(String(number).padEnd(1024 ** 2)));
    }
    expect(of.waiting.map(({ body }) => body.kind === "log" && body.message.trim())).toEqual([
      "13",
      "14",
      "15",
      "16",
      "17",
      "18",
      "19",
    ]);
    expect(warnings).toEqual([expect.stringContaining("does not keep up")]);
    writer[Symbol.dispose]();
    await writer.settled();
  });
});
