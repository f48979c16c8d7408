/** Ids of new tasks. They say the cell that keeps the task, so that is decided first. */
import type { Storage } from "../storage/storage.ts";
import { HOME_CELL, type IdSource } from "../tasks/id.ts";
import type { Submission } from "./submission.ts";

interface NewIdsOptions {
  readonly deploymentId: string;
  readonly storage: Pick<Storage, "placeTask">;
  readonly newId: IdSource;
}

export class NewIds {
  readonly #options: NewIdsOptions;

  constructor(options: NewIdsOptions) {
    this.#options = options;
  }

  /**
   * Submits a call with the id of its task: at once where there is one database. Rejects with
   * STORAGE_UNAVAILABLE where the task cannot be placed now.
   */
  one<Answer>(
    submission: Submission,
    submit: (taskId: string) => Promise<Answer>,
  ): Promise<Answer> {
    const { storage, newId } = this.#options;
    // What is stored with something else of home is home's.
    return storage.placeTask === undefined || submission.options?.store !== undefined
      ? submit(newId())
      : this.#place(submission).then((cell) => submit(newId(cell)));
  }

  /** Ids for the calls of one submit: the calls without any key go to one cell, in one transaction. */
  async all(submissions: readonly Submission[]): Promise<string[]> {
    const { storage, newId } = this.#options;
    let shared: Promise<number> | undefined;
    const cells: number[] = [];
    for (const submission of submissions) {
      if (storage.placeTask === undefined) {
        cells.push(HOME_CELL);
      } else if (hasKey(submission)) {
        cells.push(await this.#place(submission));
      } else {
        shared ??= this.#place(submission);
        cells.push(await shared);
      }
    }
    // Ids of one millisecond have no order; sorted, they keep the order of the calls in a cell.
    const ids = new Map(
      [...Map.groupBy(cells, (cell) => cell)].map(([cell, calls]) => [
        cell,
        calls
          .map(() => newId(cell))
          .sort()
          .values(),
      ]),
    );
    return cells.map((cell) => ids.get(cell)?.next().value ?? "");
  }

  async #place({ endpoint, options = {} }: Submission): Promise<number> {
    const { deploymentId, storage } = this.#options;
    const { key = endpoint.byKey && "", retryOf, idempotency } = options;
    const cell = await storage.placeTask?.({
      deploymentId,
      endpoint: endpoint.name,
      key,
      idempotencyKey: idempotency?.key,
      ...(retryOf !== undefined && { retryOf }),
    });
    return cell ?? HOME_CELL;
  }
}

function hasKey({ endpoint, options }: Submission): boolean {
  return (
    options?.key !== undefined || options?.idempotency !== undefined || endpoint.byKey !== undefined
  );
}
