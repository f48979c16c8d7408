import { expect, it, vi } from "vitest";
import { ClaimRecovery } from "../../../src/queue/claims/recovery.ts";
import type { Attempt } from "../../../src/storage/storage.ts";
import { HOME_CELL } from "../../../src/tasks/id.ts";
import { attempt, claim, LEASE, newTask, openLease, submit } from "../../storage/fixtures.ts";
import { openSqlite } from "../../storage/sqlite/databases.ts";
import { LOG } from "../queues.ts";

const SILENT_CELL = 1;

it("gives back what a cell has claimed while another one that is in doubt does not answer", async () => {
  await using storage = await openSqlite(":memory:");
  await openLease(storage);
  await submit(storage, newTask("a"), newTask("b"));
  await claim(storage, { limit: 2 });
  const given = Promise.withResolvers<void>();
  const back: Attempt[] = [];
  const silence = Promise.withResolvers<Attempt[]>();
  const recovery = new ClaimRecovery({
    storage: {
      cells: new Set([HOME_CELL, SILENT_CELL]),
      listAttempts: (which) =>
        which.cell === SILENT_CELL ? silence.promise : storage.listAttempts(which),
    },
    attempts: { has: ({ taskId }) => taskId === "b" },
    completer: {
      isUnderWay: () => false,
      giveBack(lost) {
        back.push(lost);
        given.resolve();
      },
    },
    log: LOG,
  });
  const claiming = recovery.callBegins();
  recovery.doubt([LEASE]);
  claiming.end();
  await given.promise;
  expect(back).toEqual([attempt("a")]);
  silence.resolve([]);
  await recovery[Symbol.asyncDispose]();
});

it("looks on for a while after a storage that was away for long has answered", async () => {
  let nowMs = 0;
  const now = vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const back = Promise.withResolvers<Attempt>();
  const listAttempts = vi
    .fn<() => Promise<Attempt[]>>()
    .mockImplementationOnce(async () => {
      nowMs += 60_000;
      throw new Error("it is away");
    })
    // The claim is carried out only now, because it was on its way.
    .mockResolvedValueOnce([])
    .mockResolvedValue([attempt("a")]);
  const recovery = new ClaimRecovery({
    storage: { listAttempts },
    attempts: { has: () => false },
    completer: { isUnderWay: () => false, giveBack: (lost) => back.resolve(lost) },
    log: LOG,
  });
  recovery.doubt([LEASE]);
  expect(await back.promise).toEqual(attempt("a"));
  await recovery[Symbol.asyncDispose]();
  now.mockRestore();
});
