/**
 * One cell as a node sees it. It is looked after every second, and at once when one of its operations was
 * not answered. A cell that does not answer the look is away: what is asked of it is refused at once, also
 * what was asked before, and questions to all cells leave it out, until a look is answered again. So it
 * costs nobody else a wait, but for the few seconds until the look is over.
 */
import { Problem } from "../../errors.ts";
import { raceAbort, within } from "../../time/race.ts";
import { SingleFlight } from "../../time/single-flight.ts";
import { Timer } from "../../time/timer.ts";
import { DEFAULT_STATEMENT_TIMEOUT_MS } from "../postgres/connection.ts";
import { statement } from "../postgres/session.ts";
import type { PostgresStorage } from "../postgres/storage.ts";
import { cellUnavailable, DatabaseAway, unavailable } from "../unavailable.ts";
import { CellRefused, joinCell } from "./identity.ts";
import { lookAfter } from "./mirror.ts";

/** Interval at which a node looks after each cell. */
const LOOK_INTERVAL_MS = 1_000;

/**
 * How long a cell may take to answer a look, which is several statements: as long as one of them may, for
 * claims wait meanwhile. One whose disk or machine is slow is not away.
 */
const LOOK_TIMEOUT_MS = DEFAULT_STATEMENT_TIMEOUT_MS;

/** What became of a cell, for the log. */
export type CellChange =
  | { readonly state: "up" }
  | { readonly state: "away" | "refused"; readonly reason: string }
  | { readonly state: "restored"; readonly requeued: number };

interface CellOptions {
  readonly name: string;
  readonly storage: PostgresStorage;
  readonly home: PostgresStorage;
  readonly now: () => number;
  readonly onChange: (name: string, change: CellChange) => void;
}

export class Cell implements AsyncDisposable {
  readonly name: string;
  readonly storage: PostgresStorage;
  readonly #options: CellOptions;
  readonly #looking = new SingleFlight(() => this.#look());
  /** Leases under which a claim may have been carried out that was not answered. */
  readonly doubtful = new Set<string>();
  #platformId = "";
  #number: number | undefined;
  #started = false;
  #joined = false;
  #isUp = false;
  /** Ends the questions that are under way when the cell becomes away. */
  #away = new AbortController();
  /** The last state that was reported. */
  #told = "";
  #timer: Timer | undefined;

  constructor(options: CellOptions) {
    this.#options = options;
    this.name = options.name;
    this.storage = options.storage;
  }

  /** Undefined for one that was away whenever it was asked, and that home does not know. */
  get number(): number | undefined {
    return this.#number;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  /**
   * Opens the cell. Rejects where it cannot be used; one that is away is waited for where home
   * knows its number.
   */
  async start(platformId: string, number: number | undefined): Promise<void> {
    this.#platformId = platformId;
    this.#number = number;
    if (this.#timer !== undefined) {
      return;
    }
    try {
      await this.#open();
    } catch (err) {
      if (number === undefined || !(err instanceof DatabaseAway || isUnanswered(err))) {
        throw err;
      }
      this.#tell({ state: "away", reason: messageOf(err) });
    }
    this.#timer = new Timer(
      LOOK_INTERVAL_MS,
      () => this.look(),
      () => {},
    );
  }

  /** Looks after it now; a look that is under way may be too early. Never rejects. */
  look(): Promise<void> {
    return this.#looking.run();
  }

  /** Asks the cell, where it is not away. */
  async ask<Answer>(question: (storage: PostgresStorage) => Promise<Answer>): Promise<Answer> {
    if (!this.#isUp) {
      throw cellUnavailable(this.name, undefined);
    }
    try {
      return await raceAbort(question(this.storage), this.#away.signal);
    } catch (err) {
      if (isUnanswered(err)) {
        void this.look();
        throw cellUnavailable(this.name, err);
      }
      throw err;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#timer?.[Symbol.asyncDispose]();
    await this.#looking[Symbol.asyncDispose]();
    this.#isUp = false;
    await this.storage[Symbol.asyncDispose]();
  }

  async #open(): Promise<void> {
    const { home, now } = this.#options;
    if (!this.#started) {
      await this.storage.start();
      this.#started = true;
    }
    // Once only: a database that is another one later is refused, and not joined anew.
    if (!this.#joined) {
      const joining = { platformId: this.#platformId, name: this.name };
      this.#number = await home.beside((at) =>
        this.storage.beside((db) => joinCell(db, { home: at, ...joining })),
      );
      this.#joined = true;
    }
    const { restored } = await home.beside((at) =>
      lookAfter(
        at,
        { number: this.#number as number, name: this.name, storage: this.storage },
        { platformId: this.#platformId, nowMs: now() },
      ),
    );
    if (restored !== undefined) {
      this.#options.onChange(this.name, { state: "restored", requeued: restored });
    }
    if (!this.#isUp) {
      this.#away = new AbortController();
      this.#isUp = true;
    }
    this.#tell({ state: "up" });
  }

  async #look(): Promise<void> {
    try {
      const opening = this.#open();
      await (this.#joined
        ? within(opening, LOOK_TIMEOUT_MS, () => {
            throw new Error(`it has not answered for ${LOOK_TIMEOUT_MS / 1_000} s`);
          })
        : opening);
    } catch (err) {
      // Where home did not answer, the cell may all the same.
      if (!(err instanceof CellRefused) && this.#isUp && !(await this.#isHomeThere())) {
        return;
      }
      this.#isUp = false;
      this.#away.abort(unavailable(err));
      const state = err instanceof CellRefused ? "refused" : "away";
      this.#tell({ state, reason: messageOf(err) });
    }
  }

  async #isHomeThere(): Promise<boolean> {
    try {
      await this.#options.home.beside((db) => db.query(NOTHING));
      return true;
    } catch {
      return false;
    }
  }

  #tell(change: Exclude<CellChange, { readonly state: "restored" }>): void {
    if (change.state !== this.#told) {
      this.#told = change.state;
      this.#options.onChange(this.name, change);
    }
  }
}

const NOTHING = statement("SELECT");

/** Whether a database did not answer, or has no room. */
export function isUnanswered(err: unknown): boolean {
  return err instanceof Problem && err.reason === "STORAGE_UNAVAILABLE";
}

function messageOf(err: unknown): string {
  const cause = err instanceof Problem && err.cause instanceof Error ? err.cause : err;
  return cause instanceof Error ? cause.message : String(cause);
}
