/**
 * The part of the hosting port for budgets: how much of one measure of usage (`usage.ts`) may be had in
 * a day or a month, by an organization, one deployment, one token, or one token at one deployment.
 *
 * What was used is counted into the budget's own row, by whichever node finds it due, so that the
 * sums are made once however many nodes there are; nodes read the rows of budgets that are spent.
 */
import type { Deed } from "../accounts/deed.ts";
import type { UsedToken } from "./usage.ts";

/** The time in which an amount may be used: a day or a month of UTC. */
export type BudgetPeriod = "day" | "month";

/** What a budget bounds; it never changes. */
export interface BudgetScope {
  /** `calls`, `tasks`, `run_seconds`, `gpu_seconds`, `bytes_in`, `bytes_out`, or a unit. */
  readonly measure: string;
  readonly period: BudgetPeriod;
  /** The name of the deployment; empty: all. */
  readonly deployment: string;
  /** Empty: all, and what is used without a token. */
  readonly tokenId: string;
}

export interface BudgetRecord extends Omit<BudgetScope, "tokenId"> {
  /** Undefined: all. `countBudgets` leaves its name out. */
  readonly token: UsedToken | undefined;
  readonly organizationId: string;
  readonly name: string;
  readonly budgetId: string;
  /** What may be used in a period. */
  readonly amount: number;
  readonly version: number;
  /** What was used in the period that is now, as it was counted last. */
  readonly used: number;
  /** The first day of that period. */
  readonly fromDay: number;
  /** The first day of the next one. */
  readonly toDay: number;
  readonly createdAtMs: number;
  readonly createdBy: string;
  readonly updatedAtMs: number;
  readonly updatedBy: string;
}

/** Names a budget. */
interface BudgetKey {
  readonly organizationId: string;
  readonly name: string;
}

export interface BudgetStorage {
  /** Makes a budget, and counts what was used already. */
  createBudget(
    parameters: Deed &
      BudgetKey &
      BudgetScope & {
        readonly budgetId: string;
        readonly amount: number;
        /** Refused when the organization has this many. */
        readonly limit: number;
      },
  ): Promise<
    | { readonly outcome: "created"; readonly budget: BudgetRecord }
    | { readonly outcome: "name_taken" | "limit" }
  >;

  /** Lists the budgets of an organization, by name. */
  listBudgets(parameters: {
    readonly organizationId: string;
    readonly nowMs: number;
  }): Promise<BudgetRecord[]>;

  /** Changes the amount. `version`: the one that the caller has seen; 0: whichever it is. */
  updateBudget(
    parameters: Deed & BudgetKey & { readonly amount: number; readonly version: number },
  ): Promise<
    | { readonly outcome: "updated"; readonly budget: BudgetRecord }
    | { readonly outcome: "not_found" | "version_conflict" }
  >;

  /** Deletes a budget. False: none has the name. */
  deleteBudget(parameters: Deed & BudgetKey): Promise<boolean>;

  /**
   * Counts what was used of at most `limit` budgets, of all organizations, that nobody has counted for
   * `intervalMs`. Returns those of all that are spent, and how many it has counted.
   */
  countBudgets(parameters: {
    readonly nowMs: number;
    readonly intervalMs: number;
    readonly limit: number;
  }): Promise<{
    readonly spent: readonly BudgetRecord[];
    readonly counted: number;
    /** Whether there is any. */
    readonly inUse: boolean;
  }>;
}
