import fc from "fast-check";
import { expectSame, steps } from "../commands.ts";
import type { Contract } from "../contract.ts";
import { QueueModel } from "../model.ts";
import { type Real, world } from "../step.ts";
import { expectTold, TOLD, tellEnds } from "../told.ts";

/**
 * TESSERA_PROPERTY_RUNS sets how many sequences are tried, from a random seed
 * (which a failure prints); TESSERA_PROPERTY_SEED repeats one. Without them,
 * the same few are tried every time.
 */
const { TESSERA_PROPERTY_RUNS, TESSERA_PROPERTY_SEED } = process.env;
const DEFAULT_RUNS = 25;
const DEFAULT_SEED = 20_250_615;
const MAX_STEPS = 120;

export function propertyContract({ it, createDatabase, sequences = DEFAULT_RUNS }: Contract): void {
  const numRuns = Number(TESSERA_PROPERTY_RUNS ?? sequences);
  const fixedSeed = TESSERA_PROPERTY_RUNS === undefined ? DEFAULT_SEED : undefined;
  const seed = TESSERA_PROPERTY_SEED === undefined ? fixedSeed : Number(TESSERA_PROPERTY_SEED);

  it(
    "answers as the reference model does, whatever the sequence of calls",
    async ({ capabilities }) => {
      const property = fc.asyncProperty(
        steps(capabilities.durable, MAX_STEPS),
        async (commands) => {
          await using database = await createDatabase();
          const storage = await database.open();
          const hosted = await tellEnds(storage);
          const real: Real = { database, storage, hosted };
          const queue = new QueueModel();
          queue.told = TOLD;
          const model = world(queue);
          try {
            await fc.asyncModelRun(() => ({ model, real }), commands);
            await expectSame(model, real.storage);
            await expectTold(model, real.storage, hosted);
          } finally {
            await real.storage[Symbol.asyncDispose]();
          }
        },
      );
      await fc.assert(property, { numRuns, ...(seed !== undefined && { seed }) });
    },
    60_000 + numRuns * 4_000,
  );
}
