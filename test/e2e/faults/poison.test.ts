import { describe, expect, it } from "vitest";
import { leftOut } from "../../needed.ts";
import { skipped as noSandbox } from "../../pool/sandbox/available.ts";
import { pythonMissing } from "../clients/python-environment.ts";
import { serve } from "../serve/served.ts";
import { amongPoison, PoisonedDeployment, type PoisonPlace } from "./poison.ts";

/** More of them is the larger run, over all places: 200, in CONTRIBUTING.md. */
const INNOCENTS = Number(process.env.TESSERA_POISON_INNOCENTS ?? 12);
const IS_LARGE = INNOCENTS >= 100;
const POISON = ["exit", "segfault", "memory", "abort", "loop"];
/** What poison that the node cannot stop does with its four deaths, each a start of a process. */
const LIMIT_MS = IS_LARGE ? 600_000 : 120_000;

/** The mark is that of the larger run, which has the machine to itself; here others run beside it. */
const MAX_PAUSE_MS = IS_LARGE ? 5_000 : 15_000;

const skipped = noSandbox || leftOut(pythonMissing);

/** In CI each language, database and machine somewhere. */
const FEW: readonly PoisonPlace[] = [
  { language: "Node", database: "SQLite", machine: "the node", workers: 2 },
  { language: "Python", database: "Postgres", machine: "the node", workers: 1 },
  { language: "Node", database: "Postgres", machine: "machines that joined", workers: 2 },
];

function* everywhere(): Generator<PoisonPlace> {
  for (const language of ["Node", "Python"] as const) {
    for (const database of ["SQLite", "Postgres"] as const) {
      for (const machine of ["the node", "machines that joined"] as const) {
        for (const workers of [1, 2, 4]) {
          yield { language, database, machine, workers };
        }
      }
    }
  }
}

for (const place of IS_LARGE ? everywhere() : FEW) {
  const { language, database, machine, workers } = place;
  const left = language === "Python" ? skipped : "";
  describe.skipIf(left)(
    `innocent tasks beside poison, in ${language} with ${workers} workers at ${machine}, on ${database}${left}`,
    () => {
      it(
        "all succeed, the poison fails within four deaths, and the queue goes on",
        async () => {
          await using deployment = await PoisonedDeployment.start(place);
          const beganMs = performance.now();
          const harm = await amongPoison(deployment, {
            innocents: INNOCENTS,
            ms: 500,
            poison: POISON,
          });
          if (IS_LARGE) {
            const deaths = POISON.map((name) => `${name} ${harm.poison[name]?.deaths}`).join(", ");
            console.log(
              `${language}, ${database}, ${machine}, workers: ${workers}; innocents that failed: ${harm.failed.length}; longest pause: ${harm.longestPauseMs} ms; deaths: ${deaths}; ${Math.round((performance.now() - beganMs) / 1_000)} s`,
            );
          }
          expect(harm.failed).toEqual([]);
          expect(harm.poison).toMatchObject({
            exit: { status: "failure", reason: "worker_lost" },
            segfault: { status: "failure", reason: "worker_lost" },
            memory: { status: "failure", reason: "out_of_memory" },
            abort: { status: "failure", reason: "worker_lost" },
            loop: { status: "failure", reason: "timeout" },
          });
          for (const { deaths } of Object.values(harm.poison)) {
            expect(deaths).toBeLessThanOrEqual(4);
          }
          expect(harm.longestPauseMs).toBeLessThan(MAX_PAUSE_MS);
        },
        LIMIT_MS,
      );
    },
  );
}

it("the other inputs of a batch succeed where one ends the worker", async () => {
  await using served = await serve("poison", { workers: 1 });
  const ids = await Promise.all([1, 2, -1, 3, 4].map((n) => served.submit("together", { n })));
  const ended = await Promise.all(ids.map((id) => served.ended("together", id)));
  expect(ended.map(({ status }) => status)).toEqual([
    ...["success", "success", "failure", "success", "success"],
  ]);
  expect(ended[2]).toMatchObject({ attempt: 4, failure: { reason: "worker_lost" } });
});
