/**
 * The databases of a platform: home and its cells. What is asked of several of them is asked through this.
 *
 * Which cells there are, and from when each takes tasks with keys, is read from home every second.
 */
import { cellOfTaskId, HOME_CELL } from "../../tasks/id.ts";
import { SCHEDULE_KEY_PREFIX } from "../../tasks/task.ts";
import { Timer } from "../../time/timer.ts";
import { prepared, type Session, statement } from "../postgres/session.ts";
import type { PostgresStorage } from "../postgres/storage.ts";
import { cellUnavailable, unavailable } from "../unavailable.ts";
import { Cell, type CellChange, isUnanswered } from "./cell.ts";
import { EMPTIED_AFTER_MS, noteEmptied } from "./close.ts";
import {
  identifyHome,
  KNOWN_FOR_MS,
  type KnownCell,
  knownCells,
  refuseUnnamed,
} from "./identity.ts";
import {
  changesUntil,
  HOLDS,
  KEYS_SETTLE_MS,
  type KeyOfTask,
  type Places,
  takersAt,
} from "./placement.ts";

/** How old the list of cells may be when a task without a key is placed: one may be closed meanwhile. */
const UNKEYED_FOR_MS = 60_000;

/** Interval at which the cells are read from home. */
const READ_INTERVAL_MS = 1_000;

const TIME = prepared(
  "time_at_home",
  "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms",
);

/** Keys of schedules are made for each time, and are home's. */
const OWN_KEYS = statement(
  `SELECT EXISTS (SELECT FROM idempotency_keys
     WHERE NOT starts_with(key, '${SCHEDULE_KEY_PREFIX}')) AS there`,
);

/** A cell with its database, as it is configured. */
export interface ConfiguredCell {
  readonly name: string;
  readonly storage: PostgresStorage;
}

export interface CellsOptions {
  readonly home: PostgresStorage;
  readonly cells: readonly ConfiguredCell[];
  readonly now?: () => number;
  /** The cell of a task. Default: the one that its id says. */
  readonly cellOf?: (taskId: string) => number;
  /** Told what becomes of cells. Default: nobody. */
  readonly onChange?: (name: string, change: CellChange) => void;
}

/** Asks one database. */
export type Question<Answer> = (storage: PostgresStorage, number: number) => Promise<Answer>;

export class Cells implements Places, AsyncDisposable {
  readonly home: PostgresStorage;
  readonly cellOf: (taskId: string) => number;
  /** Numbers of all, with home; it is filled by the start. */
  readonly numbers = new Set([HOME_CELL]);
  readonly #cells: readonly Cell[];
  #isHomeOpen = false;
  #known: { readonly cells: readonly KnownCell[]; readonly nowMs: number; readonly atMs: number } =
    {
      cells: [],
      nowMs: 0,
      atMs: Number.NEGATIVE_INFINITY,
    };
  homeHasKeys = true;
  #timer: Timer | undefined;

  constructor({
    home,
    cells,
    now = Date.now,
    cellOf = cellOfTaskId,
    onChange = () => {},
  }: CellsOptions) {
    this.home = home;
    this.cellOf = cellOf;
    this.#cells = cells.map((cell) => new Cell({ ...cell, home, now, onChange }));
  }

  /** Opens home and the cells; may be repeated after it was rejected. Throws `CellRefused`. */
  async start(): Promise<void> {
    if (!this.#isHomeOpen) {
      await this.home.start();
      this.#isHomeOpen = true;
    }
    const platformId = await this.home.beside(identifyHome);
    const known = await this.home.beside(knownCells);
    refuseUnnamed(
      known,
      this.#cells.map(({ name }) => name),
    );
    // One after the other, so that new ones are numbered in the order of the setting.
    for (const cell of this.#cells) {
      await cell.start(platformId, known.find(({ name }) => name === cell.name)?.number);
      this.numbers.add(cell.number as number);
    }
    await this.#read();
    this.#timer = new Timer(
      READ_INTERVAL_MS,
      () => this.#read(),
      () => {
        // What was read stays good for a while, and then no task with a key is placed.
      },
    );
  }

  /** The cell that keeps a task; undefined where the platform has none of its number. Throws where it is away. */
  async of<Answer>(taskId: string, question: Question<Answer>): Promise<Answer | undefined> {
    return this.at(this.cellOf(taskId), question);
  }

  /** The same by the number of a cell. */
  async at<Answer>(number: number, question: Question<Answer>): Promise<Answer | undefined> {
    if (number === HOME_CELL) {
      return question(this.home, HOME_CELL);
    }
    const cell = this.#find(number);
    if (cell === undefined) {
      const added = this.#known.cells.find((one) => one.number === number);
      if (added !== undefined && !added.isEmptied) {
        const message = "this node was not given it: name it in TESSERA_CELLS";
        throw cellUnavailable(added.name, new Error(message));
      }
      return undefined;
    }
    return cell.ask((storage) => question(storage, number));
  }

  /**
   * Asks home and each cell that answers; what a cell did not answer is left out. Rejects where one of
   * `needed` does not answer.
   */
  async each<Answer>(question: Question<Answer>, needed: readonly Cell[] = []): Promise<Answer[]> {
    const asked = [
      question(this.home, HOME_CELL),
      ...[...new Set([...this.up, ...needed])].map(async (cell) => {
        try {
          return await cell.ask((storage) => question(storage, cell.number as number));
        } catch (err) {
          if (isUnanswered(err) && !needed.includes(cell)) {
            return undefined;
          }
          throw err;
        }
      }),
    ];
    const answers = await Promise.all(asked);
    return answers.filter((one): one is Awaited<Answer> => one !== undefined);
  }

  /** Asks home and all cells, and rejects where one does not answer. */
  all<Answer>(question: Question<Answer>): Promise<Answer[]> {
    return Promise.all([
      question(this.home, HOME_CELL),
      ...this.#cells.map((cell) => cell.ask((storage) => question(storage, cell.number as number))),
    ]);
  }

  /** Throws where one of the cells of these numbers is away. */
  refuseAway(numbers: readonly number[]): void {
    for (const cell of this.#cells) {
      if (!cell.isUp && numbers.includes(cell.number as number)) {
        throw cellUnavailable(cell.name, undefined);
      }
    }
  }

  /** The cells that answer, without home. */
  get up(): readonly Cell[] {
    return this.#cells.filter(({ isUp }) => isUp);
  }

  get isWhole(): boolean {
    return this.#cells.every(({ isUp }) => isUp);
  }

  /** Those that are away, too. */
  get list(): readonly Cell[] {
    return this.#cells;
  }

  /** Brings home's rows to the cells that answer. Never rejects. */
  async bring(): Promise<void> {
    await Promise.all(this.up.map((cell) => cell.look()));
  }

  known(maxAgeMs = KNOWN_FOR_MS): { readonly cells: readonly KnownCell[]; readonly nowMs: number } {
    const { cells, nowMs, atMs } = this.#known;
    const ageMs = performance.now() - atMs;
    if (ageMs > maxAgeMs) {
      throw unavailable(new Error("home has not said for some seconds which cells there are"));
    }
    return { cells, nowMs: nowMs + ageMs };
  }

  reachable(): readonly number[] {
    const { cells } = this.known(UNKEYED_FOR_MS);
    const open = new Set(
      cells.flatMap(({ number, closedFromMs }) => (closedFromMs === undefined ? [number] : [])),
    );
    return this.up.flatMap(({ number = HOME_CELL }) => (open.has(number) ? [number] : []));
  }

  async holds(cell: number, { deploymentId, endpoint, key }: KeyOfTask): Promise<boolean> {
    const held = await this.at(cell, (storage) =>
      storage.beside((db) => db.query(HOLDS, deploymentId, endpoint, key)),
    );
    return held?.[0]?.held === true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#timer?.[Symbol.asyncDispose]();
    await Promise.all(this.#cells.map((cell) => cell[Symbol.asyncDispose]()));
    await this.home[Symbol.asyncDispose]();
  }

  #find(number: number): Cell | undefined {
    return this.#cells.find((cell) => cell.number === number);
  }

  async #read(): Promise<void> {
    const atMs = performance.now();
    await this.home.beside(async (db) => {
      const [time] = await db.query(TIME);
      const nowMs = Number(time?.now_ms);
      const cells = await knownCells(db);
      this.#known = { cells, nowMs, atMs };
      for (const { number, isEmptied } of cells) {
        if (isEmptied) {
          // Its ids are those of tasks that are gone.
          this.numbers.add(number);
        }
      }
      await this.#lookAtHomesKeys(db);
    });
    await this.#noteEmptied();
  }

  /** Whether keys have to be looked for at home; it has none once nothing with a key goes there any more. */
  async #lookAtHomesKeys(home: Pick<Session, "query">): Promise<void> {
    const { cells, nowMs } = this.#known;
    if (takersAt(cells, nowMs).length === 0) {
      this.homeHasKeys = true;
    } else if (
      this.homeHasKeys &&
      (changesUntil(cells, nowMs).at(-1) ?? nowMs) + KEYS_SETTLE_MS < nowMs
    ) {
      const [keys] = await home.query(OWN_KEYS);
      this.homeHasKeys = keys?.there === true;
    }
  }

  /** Notes of the closed cells whether they have nothing left. */
  async #noteEmptied(): Promise<void> {
    const { cells, nowMs } = this.#known;
    for (const known of cells) {
      const { number, closedFromMs } = known;
      const cell = this.up.find((one) => one.number === number);
      if (closedFromMs !== undefined && closedFromMs + EMPTIED_AFTER_MS < nowMs) {
        try {
          await cell?.ask((storage) =>
            storage.beside((db) => this.home.beside((home) => noteEmptied(home, db, known))),
          );
        } catch {
          // It is looked at again, and until then it has to be named.
        }
      }
    }
  }
}
