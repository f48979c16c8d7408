import { expect } from "vitest";
import type { Attempt, AttemptEnd, NewEvent, Storage } from "../../../src/storage/storage.ts";
import { eventLog, type TaskEvent, type TaskEventBody } from "../../../src/tasks/event.ts";
import { WORKER_LOST } from "../../../src/tasks/failure.ts";
import { MAX_LOST_WORKERS } from "../../../src/tasks/lost.ts";
import type { TaskStatus } from "../../../src/tasks/task.ts";
import type { Contract } from "../contract.ts";
import {
  attempt,
  claim,
  endAttempt,
  FAILURE,
  key,
  LEASE,
  NOW_MS,
  newTask,
  openLease,
  startTask,
  submit,
  success,
} from "../fixtures.ts";

function progress(fraction: number, message = ""): TaskEventBody {
  return { kind: "progress", fraction, message };
}

function line(message: string): TaskEventBody {
  return { kind: "log", level: "info", message, fieldsJson: '{"n":1}' };
}

/** Numbered lines. */
function lines(from: number, to: number): TaskEventBody[] {
  return Array.from({ length: to - from + 1 }, (_, index) => ({
    ...(line("x") as Extract<TaskEventBody, { kind: "log" }>),
    line: from + index,
  }));
}

function record(storage: Storage, by: Attempt, ...bodies: TaskEventBody[]) {
  const events = bodies.map((body) => ({ attempt: by, timeMs: NOW_MS + 1, body }));
  return storage.recordEvents({ events });
}

/** Events that are given with an end. */
function last(...bodies: TaskEventBody[]): NewEvent[] {
  return bodies.map((body) => ({ timeMs: NOW_MS + 1, body }));
}

/** The log of task "a" after a sequence number, as a watcher reads it. */
async function log(storage: Storage, afterSequence = 0): Promise<TaskEvent[]> {
  const history = await storage.getHistory({ ...key("a"), afterSequence, limit: 10_000 });
  return history ? eventLog(history, afterSequence) : [];
}

/** The numbers of the lines that are kept, as ranges. */
async function kept(storage: Storage): Promise<[from: number, to: number][]> {
  const ranges: [from: number, to: number][] = [];
  for (const { body } of await log(storage)) {
    const { line: number } = body.kind === "log" ? body : {};
    const last = ranges.at(-1);
    if (number !== undefined && last?.[1] === number - 1) {
      last[1] = number;
    } else if (number !== undefined) {
      ranges.push([number, number]);
    }
  }
  return ranges;
}

function brief(events: readonly TaskEvent[]) {
  return events.map(({ sequence, attempt, body }) => {
    const what = body.kind === "state" ? body.status : body.kind;
    return `${sequence} ${what} ${attempt}`;
  });
}

/** A life with progress, a retry, a lost worker and a success. */
async function liveThrough(storage: Storage): Promise<void> {
  await openLease(storage);
  await submit(storage, newTask("a"));
  await claim(storage);
  await record(storage, attempt("a"), progress(0.5), line("half way"));
  await endAttempt(storage, attempt("a"), {
    status: "queued",
    runAtMs: NOW_MS,
    failed: true,
    failure: FAILURE,
  });
  await claim(storage);
  await record(storage, attempt("a", { attempt: 2 }), line("again"));
  await storage.closeLease({ leaseId: LEASE, nowMs: NOW_MS });
  await openLease(storage, "lease-2");
  await claim(storage, { leaseId: "lease-2" });
  const third = attempt("a", { attempt: 3, leaseId: "lease-2" });
  await record(storage, third, progress(1));
  await endAttempt(storage, third, success("done"));
}

const WHOLE_LIFE = [
  "1 queued 0",
  "2 running 1",
  "3 progress 1",
  "4 log 1",
  "5 queued 1",
  "6 running 2",
  "7 log 2",
  "8 queued 2",
  "9 running 3",
  "10 progress 3",
  "11 success 3",
];

export function eventsContract({ it }: Contract): void {
  it("numbers the events of a task without gaps, in the order given", async (storage) => {
    const running = await startTask(storage, "a");
    const sequences = await record(storage, running, progress(0.1), line("x"), progress(0.2));
    expect(sequences).toEqual([3, 4, 5]);
    expect(await record(storage, running, line("y"))).toEqual([6]);
    expect(await storage.getTask(key("a"))).toMatchObject({ lastSequence: 6 });
  });

  it("removes the lines of its own attempt that a line displaces, and nothing else", async (storage) => {
    const first = await startTask(storage, "a");
    await record(storage, first, ...lines(1, 50), progress(0.5), ...lines(51, 100));
    await endAttempt(storage, first, { status: "queued", failed: true, failure: FAILURE });
    await claim(storage, {});
    const second = attempt("a", { attempt: 2 });
    await record(storage, second, ...lines(1, 100));
    const [body = progress(0)] = lines(101, 101);
    const displaces = { first: 21, last: 80 };
    const event = { attempt: second, timeMs: NOW_MS, body, displaces };
    await storage.recordEvents({ events: [{ ...event, attempt: first }, event] });
    expect(await kept(storage)).toEqual([
      [1, 100],
      [1, 20],
      [81, 101],
    ]);
    expect((await log(storage)).filter(({ body }) => body.kind === "progress")).toHaveLength(1);
  });

  it("keeps events whole", async (storage) => {
    const running = await startTask(storage, "a");
    const bodies = [progress(0.25, "a quarter ü"), line("a line\nof two")];
    await record(storage, running, ...bodies);
    const events = bodies.map((body, index) => ({
      sequence: index + 3,
      timeMs: NOW_MS + 1,
      attempt: 1,
      body,
    }));
    expect(await log(storage, 2)).toEqual(events);
  });

  it("shows the latest progress on the task, until the next attempt", async (storage) => {
    const running = await startTask(storage, "a");
    const shown = async () => (await storage.getTask(key("a")))?.progress;
    expect(await shown()).toBeUndefined();
    await record(storage, running, progress(0, "begun"));
    expect(await shown()).toEqual({ fraction: 0, message: "begun" });
    await record(storage, running, progress(0.5), line("not progress"));
    expect(await shown()).toEqual({ fraction: 0.5, message: "" });
    await endAttempt(storage, running, {
      status: "queued",
      runAtMs: NOW_MS,
      failed: true,
      failure: FAILURE,
    });
    await claim(storage);
    expect(await shown()).toBeUndefined();
  });

  it("answers events in order, undefined for those of stale attempts", async (storage) => {
    await startTask(storage, "a");
    await startTask(storage, "b");
    const events = [
      attempt("b"),
      attempt("a", { attempt: 2 }),
      attempt("a"),
      attempt("none"),
      attempt("b"),
    ].map((by) => ({ attempt: by, timeMs: NOW_MS, body: line("x") }));
    expect(await storage.recordEvents({ events })).toEqual([3, undefined, 3, undefined, 4]);
  });

  it("tells the whole life of a task in order", async (storage) => {
    await liveThrough(storage);
    expect(brief(await log(storage))).toEqual(WHOLE_LIFE);
  });

  it("answers exactly the rest of a log after any sequence number", async (storage) => {
    await liveThrough(storage);
    for (let after = 0; after <= WHOLE_LIFE.length; after++) {
      expect(brief(await log(storage, after))).toEqual(WHOLE_LIFE.slice(after));
    }
  });

  it("shows a watcher the same log while it grows", async (storage) => {
    const seen: TaskEvent[] = [];
    const look = async () => {
      seen.push(...(await log(storage, seen.at(-1)?.sequence ?? 0)));
    };
    await openLease(storage);
    await submit(storage, newTask("a"));
    await look();
    await claim(storage);
    await look();
    await record(storage, attempt("a"), line("x"));
    await look();
    await endAttempt(storage, attempt("a"), { status: "worker_lost", failure: WORKER_LOST });
    await look();
    await claim(storage, { suspects: true });
    await look();
    const failed = { status: "failure", failure: FAILURE } as const;
    await endAttempt(storage, attempt("a", { attempt: 2 }), failed);
    await look();
    expect(seen).toEqual(await log(storage));
    expect(seen.at(-1)?.body).toEqual({ kind: "state", status: "failure", failure: FAILURE });
  });

  it("answers at most the limit of stored events, the earliest", async (storage) => {
    const running = await startTask(storage, "a");
    await record(storage, running, ...["u", "v", "w", "x"].map(line));
    const read = async (afterSequence: number) => {
      const history = await storage.getHistory({ ...key("a"), afterSequence, limit: 2 });
      return history?.stored.map(({ sequence }) => sequence);
    };
    expect(await read(0)).toEqual([3, 4]);
    expect(await read(4)).toEqual([5, 6]);
    expect(await read(6)).toEqual([]);
  });

  for (const [how, end, status] of [
    ["succeeds", success("done"), "success"],
    ["has a large result", success("x".repeat(100_000)), "success"],
    ["fails", { status: "failure", failure: FAILURE }, "failure"],
    ["is cancelled", { status: "cancelled" }, "cancelled"],
    ["is retried", { status: "queued", failed: true, failure: FAILURE }, "queued"],
    ["loses its worker", { status: "worker_lost", failure: WORKER_LOST }, "queued"],
  ] as const satisfies readonly (readonly [string, AttemptEnd, TaskStatus])[]) {
    it(`appends what an attempt reported last before its end, when it ${how}`, async (storage) => {
      const running = await startTask(storage, "a");
      await record(storage, running, line("first"));
      const events = last(line("summary"), progress(1, "all"));
      const ends = [{ attempt: running, end, events }];
      const [ended] = await storage.endAttempts({ nowMs: NOW_MS + 2, ends });
      expect(brief(await log(storage))).toEqual([
        ...["1 queued 0", "2 running 1", "3 log 1", "4 log 1", "5 progress 1"],
        `6 ${status} 1`,
      ]);
      expect(ended).toEqual(await storage.getTask(key("a")));
      expect(ended).toMatchObject({ lastSequence: 6, progress: { fraction: 1, message: "all" } });
    });
  }

  it("appends what an attempt reported last when its last worker is lost", async (storage) => {
    const lost: AttemptEnd = { status: "worker_lost", failure: WORKER_LOST };
    await startTask(storage, "a");
    for (let number = 1; number <= MAX_LOST_WORKERS; number += 1) {
      await endAttempt(storage, attempt("a", { attempt: number }), lost);
      await claim(storage, { suspects: true });
    }
    const ends = [
      {
        attempt: attempt("a", { attempt: MAX_LOST_WORKERS + 1 }),
        end: lost,
        events: last(line("x")),
      },
    ];
    const [ended] = await storage.endAttempts({ nowMs: NOW_MS, ends });
    const events = await log(storage);
    expect(events.slice(-2).map(({ body }) => body.kind)).toEqual(["log", "state"]);
    expect(ended).toMatchObject({ status: "failure", lastSequence: events.at(-1)?.sequence });
  });

  it("appends nothing of an end that is stale, or repeated because its answer was lost", async (storage) => {
    const running = await startTask(storage, "a");
    const stale = { ...running, attempt: 2 };
    const [body = line("")] = lines(101, 101);
    const displaces = { first: 1, last: 50 };
    await record(storage, running, ...lines(1, 100));
    const end = success("done");
    const events = [{ timeMs: NOW_MS, body, displaces }];
    const nowMs = NOW_MS + 1;
    const staleEnds = [{ attempt: stale, end, events }];
    expect(await storage.endAttempts({ nowMs, ends: staleEnds })).toEqual([undefined]);
    expect(await kept(storage)).toEqual([[1, 100]]);
    const ends = [{ attempt: running, end, events }];
    const [ended] = await storage.endAttempts({ nowMs, ends });
    expect(await storage.endAttempts({ nowMs, ends })).toEqual([ended]);
    expect(await kept(storage)).toEqual([[51, 101]]);
  });

  it("ends the log of a cancelled task with that", async (storage) => {
    await submit(storage, newTask("a"));
    await storage.cancelTask({ ...key("a"), nowMs: NOW_MS + 3 });
    const events = await log(storage);
    expect(brief(events)).toEqual(["1 queued 0", "2 cancelled 0"]);
    expect(events.map(({ timeMs }) => timeMs)).toEqual([NOW_MS, NOW_MS + 3]);
  });
}
