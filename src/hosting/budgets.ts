/**
 * The budgets of a node: refuses new calls and submits of what a spent budget bounds.
 *
 * A call looks into memory alone, at the budgets that were spent when this node asked last. Every
 * five seconds it asks, and the database counts then what nobody has counted for ten. So a budget is
 * soft: calls of apis are flushed every ten seconds, and what runs meanwhile adds to it. A change of a
 * budget is a change event, after which a node asks at once. Without budgets nothing is spent, and a
 * node asks after change events alone.
 */
import type { ChangeFeed } from "../auth/change-feed.ts";
import { type Problem, problem } from "../errors.ts";
import type { Log } from "../log/log.ts";
import type { EndpointManifest } from "../protocol/manifest.ts";
import { startOfDay } from "../storage/days.ts";
import type { BudgetRecord, BudgetStorage } from "../storage/hosting/budgets.ts";
import { SingleFlight } from "../time/single-flight.ts";
import { Timer } from "../time/timer.ts";

/** How often what was used of a budget is counted, by one of the nodes. */
const BUDGET_COUNT_INTERVAL_MS = 10_000;
/** Interval at which a node looks for budgets that are spent, while there are budgets. */
const BUDGET_POLL_INTERVAL_MS = 5_000;
/** Budgets that are counted in one transaction. */
const MAX_BUDGETS_PER_COUNT = 50;
/** Longest `Retry-After` for a budget that is spent: it may be raised at any time. */
const MAX_BUDGET_RETRY_AFTER_MS = 3_600_000;

interface BudgetsOptions {
  readonly hosting: Pick<BudgetStorage, "countBudgets">;
  readonly changes: Pick<ChangeFeed, "listen">;
  readonly now: () => number;
  readonly log: Log;
}

/** The deployment that a call is for. */
interface Called {
  readonly organizationId: string;
  readonly name: string;
}

export class Budgets implements AsyncDisposable {
  readonly #options: BudgetsOptions;
  readonly #flight = new SingleFlight(() => this.#read());
  readonly #timer: Timer;
  readonly #unlisten: () => void;
  /** By organization. */
  #spent: ReadonlyMap<string, readonly BudgetRecord[]> = new Map();
  /** Whether there may be budgets. */
  #inUse = true;

  constructor(options: BudgetsOptions) {
    this.#options = options;
    this.#timer = new Timer(
      BUDGET_POLL_INTERVAL_MS,
      async () => this.#inUse && this.look(),
      () => {},
    );
    this.#unlisten = options.changes.listen((forgotten) => {
      if (forgotten.some(({ kind }) => kind === "deployment" || kind === "everything")) {
        void this.look();
      }
    });
  }

  /** Asks which budgets are spent. Never rejects: without an answer, what was known is believed. */
  look(): Promise<void> {
    return this.#flight.run();
  }

  /**
   * The BUDGET_SPENT for a call, or a submit, that a spent budget bounds; undefined: none does.
   * @param tokenId the token of the caller; undefined: none
   */
  refusal(
    called: Called,
    kind: EndpointManifest["kind"],
    tokenId: string | undefined,
  ): Problem | undefined {
    // Nearly always.
    if (this.#spent.size === 0) {
      return undefined;
    }
    const nowMs = this.#options.now();
    const spent = this.#spent
      .get(called.organizationId)
      ?.find((one) => bounds(one, kind, tokenId) && isOf(one, called) && endOf(one) > nowMs);
    return spent && spentProblem(spent, nowMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#unlisten();
    await this.#timer[Symbol.asyncDispose]();
    await this.#flight[Symbol.asyncDispose]();
  }

  async #read(): Promise<void> {
    const { hosting, now, log } = this.#options;
    try {
      for (;;) {
        const { spent, counted, inUse } = await hosting.countBudgets({
          ...{ nowMs: now(), intervalMs: BUDGET_COUNT_INTERVAL_MS, limit: MAX_BUDGETS_PER_COUNT },
        });
        this.#spent = Map.groupBy(spent, ({ organizationId }) => organizationId);
        this.#inUse = inUse;
        if (counted < MAX_BUDGETS_PER_COUNT) {
          return;
        }
      }
    } catch (err) {
      log.warn({ err }, "budgets could not be read: what was known of them is believed");
    }
  }
}

function bounds(
  { measure, token }: BudgetRecord,
  kind: EndpointManifest["kind"],
  tokenId: string | undefined,
): boolean {
  const isOther = measure === (kind === "api" ? "tasks" : "calls");
  return !isOther && (token === undefined || token.id === tokenId);
}

function isOf({ deployment }: BudgetRecord, { name }: Called): boolean {
  return deployment === "" || deployment === name;
}

/** When the period is over in which it is spent. */
function endOf({ toDay }: BudgetRecord): number {
  return startOfDay(toDay);
}

function spentProblem(budget: BudgetRecord, nowMs: number): Problem {
  const { name, amount, measure, period, fromDay, toDay } = budget;
  const resetMs = endOf(budget) - nowMs;
  const end = new Date(endOf(budget)).toISOString();
  return problem(
    "BUDGET_SPENT",
    `the budget ${name} of ${amount} ${measure} a ${period} is spent: try again after ${end}, or let an admin of the organization raise it (tessera budget update ${name} AMOUNT)`,
    {
      retryAfterMs: Math.min(resetMs, MAX_BUDGET_RETRY_AFTER_MS),
      spentQuota: {
        ...{ name, quota: amount, resetMs },
        windowMs: startOfDay(toDay) - startOfDay(fromDay),
      },
      metadata: { budget: name },
    },
  );
}
