/**
 * The contract of the storage port, for any database: every method and every
 * promise of `src/storage/storage.ts`. Each test gets a database of its own.
 * Nothing here knows which database it is; where one cannot keep a promise,
 * its tests are skipped by name, with the reason.
 */
import { describe, test } from "vitest";
import type { Storage } from "../../src/storage/storage.ts";
import { attemptsContract } from "./contract/attempts.ts";
import { blobsContract } from "./contract/blobs.ts";
import { claimContract } from "./contract/claim.ts";
import { countsContract } from "./contract/counts.ts";
import { deadlinesContract } from "./contract/deadlines.ts";
import { deleteContract } from "./contract/delete.ts";
import { endContract } from "./contract/end.ts";
import { epochContract } from "./contract/epoch.ts";
import { eventsContract } from "./contract/events.ts";
import { fencingContract } from "./contract/fencing.ts";
import { keysContract } from "./contract/keys.ts";
import { leasesContract } from "./contract/leases.ts";
import { listContract } from "./contract/list.ts";
import { payloadsContract } from "./contract/payloads.ts";
import { piecesContract } from "./contract/pieces.ts";
import { propertyContract } from "./contract/property.ts";
import { pruneContract } from "./contract/prune.ts";
import { returnedContract } from "./contract/returned.ts";
import { searchContract } from "./contract/search.ts";
import { submitContract } from "./contract/submit.ts";
import { suspectsContract } from "./contract/suspects.ts";
import { tagsContract } from "./contract/tags.ts";
import { traceContract } from "./contract/trace.ts";
import { updateContract } from "./contract/update.ts";

/** An empty database; disposing of it removes it. */
export interface TestDatabase extends AsyncDisposable {
  /** A started storage on it. One at a time: the one before has been disposed of. */
  open(): Promise<Storage>;
}

export type CreateDatabase = () => Promise<TestDatabase>;

export interface ContractOptions {
  /** Default: all. */
  readonly parts?: readonly ContractPart[];
  readonly skip?: readonly { readonly reason: string; readonly tests: readonly string[] }[];
  /** Sequences of calls that are compared with the model, where no variable says how many. */
  readonly sequences?: number;
}

/** What a part of the contract is written with. */
export interface Contract {
  readonly createDatabase: CreateDatabase;
  readonly sequences: number | undefined;
  it(name: string, run: (storage: Storage) => Promise<void>, timeoutMs?: number): void;
}

const PARTS = {
  "returned attempts": returnedContract,
  submit: submitContract,
  claim: claimContract,
  end: endContract,
  suspects: suspectsContract,
  fencing: fencingContract,
  "attempts and aborts": attemptsContract,
  deadlines: deadlinesContract,
  "lists and positions": listContract,
  "searches of several deployments": searchContract,
  payloads: payloadsContract,
  blobs: blobsContract,
  events: eventsContract,
  "pieces of streamed results": piecesContract,
  leases: leasesContract,
  epoch: epochContract,
  prune: pruneContract,
  update: updateContract,
  delete: deleteContract,
  counts: countsContract,
  keys: keysContract,
  tags: tagsContract,
  trace: traceContract,
  model: propertyContract,
} satisfies Readonly<Record<string, (contract: Contract) => void>>;

export type ContractPart = keyof typeof PARTS;

const ALL_PARTS = Object.keys(PARTS) as ContractPart[];

export function storageContract(
  name: string,
  createDatabase: CreateDatabase,
  { parts = ALL_PARTS, skip = [], sequences }: ContractOptions = {},
): void {
  const contract: Contract = {
    createDatabase,
    sequences,
    it(testName, run, timeoutMs) {
      const skipped = skip.find(({ tests }) => tests.includes(testName));
      if (skipped) {
        test.skip(`${testName} (skipped: ${skipped.reason})`);
        return;
      }
      const runOnDatabase = async (): Promise<void> => {
        await using database = await createDatabase();
        await using storage = await database.open();
        await run(storage);
      };
      test(testName, runOnDatabase, timeoutMs);
    },
  };
  describe(`storage contract on ${name}`, () => {
    for (const part of parts) {
      describe(part, () => PARTS[part](contract));
    }
  });
}
