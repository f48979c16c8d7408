/**
 * Keeps budgets, and counts what was used of them. Of a month, the days before yesterday are summed
 * up once a day: nobody flushes use of them any more. So counting reads two days, also at the end of
 * a month.
 */
import { dayOf, periodOf } from "../../days.ts";
import type {
  BudgetPeriod,
  BudgetRecord,
  BudgetScope,
  BudgetStorage,
} from "../../hosting/budgets.ts";
import type { HostingStorage } from "../../hosting/hosting.ts";
import type { UsedToken } from "../../hosting/usage.ts";
import { record } from "../accounts/audit.ts";
import { announce } from "../accounts/changes.ts";
import { lockOrganization } from "../accounts/locks.ts";
import { type Operation, query } from "../operation.ts";
import { nameless, readAmount, tokensOf } from "./usage.ts";

type Given<Name extends keyof BudgetStorage> = Parameters<HostingStorage[Name]>[0];
type Result<Name extends keyof BudgetStorage> = Operation<Awaited<ReturnType<BudgetStorage[Name]>>>;

interface BudgetRow {
  readonly organization_id: string;
  readonly name: string;
  readonly budget_id: string;
  readonly measure: string;
  readonly amount: number;
  readonly period: BudgetPeriod;
  readonly deployment: string;
  readonly token_id: string;
  readonly version: number;
  readonly used: number;
  readonly used_from_day: number;
  readonly settled: number;
  readonly settled_to_day: number;
  readonly created_at_ms: number;
  readonly created_by: string;
  readonly updated_at_ms: number;
  readonly updated_by: string;
}

const COLUMNS = `organization_id, name, budget_id, measure, amount, period, deployment, token_id,
  version, used, used_from_day, settled, settled_to_day, created_at_ms, created_by, updated_at_ms, updated_by`;

function toBudget(
  row: BudgetRow,
  nowMs: number,
  tokens?: ReadonlyMap<string, UsedToken>,
): BudgetRecord {
  const { fromDay, toDay } = periodOf(row.period, nowMs);
  return {
    organizationId: row.organization_id,
    name: row.name,
    budgetId: row.budget_id,
    measure: row.measure,
    amount: row.amount,
    period: row.period,
    deployment: row.deployment,
    token: row.token_id === "" ? undefined : (tokens?.get(row.token_id) ?? nameless(row.token_id)),
    version: row.version,
    // What was counted in the period before says nothing of this one.
    used: row.used_from_day === fromDay ? row.used : 0,
    ...{ fromDay, toDay },
    createdAtMs: row.created_at_ms,
    createdBy: row.created_by,
    updatedAtMs: row.updated_at_ms,
    updatedBy: row.updated_by,
  };
}

export function* listBudgets({
  organizationId,
  nowMs,
}: Given<"listBudgets">): Operation<BudgetRecord[]> {
  const rows = yield* query<BudgetRow>(
    `SELECT ${COLUMNS} FROM budgets WHERE organization_id = ? ORDER BY name`,
    organizationId,
  );
  const tokens = yield* tokensOf(organizationId, rows);
  return rows.map((row) => toBudget(row, nowMs, tokens));
}

function* findBudget({
  name,
  ...asked
}: Given<"listBudgets"> & { readonly name: string }): Operation<BudgetRecord | undefined> {
  return (yield* listBudgets(asked)).find((one) => one.name === name);
}

export function* createBudget(parameters: Given<"createBudget">): Result<"createBudget"> {
  const { organizationId, name, budgetId, measure, amount, period, nowMs, by } = parameters;
  yield* lockOrganization(organizationId);
  const there = yield* listBudgets(parameters);
  if (there.some((one) => one.name === name)) {
    return { outcome: "name_taken" };
  }
  if (there.length >= parameters.limit) {
    return { outcome: "limit" };
  }
  const counted = yield* countUse(parameters, nowMs);
  yield* query(
    `INSERT INTO budgets (${COLUMNS}, counted_at_ms)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    ...[organizationId, name, budgetId, measure, amount, period],
    ...[parameters.deployment, parameters.tokenId],
    ...counted,
    ...[nowMs, by.name, nowMs, by.name, nowMs],
  );
  yield* record(parameters, organizationId, {
    ...{ action: "budget.create", subjectId: budgetId, subject: name },
    details: detailsOf(parameters),
  });
  return { outcome: "created", budget: yield* changed(parameters) };
}

export function* updateBudget(parameters: Given<"updateBudget">): Result<"updateBudget"> {
  const { organizationId, name, amount, version, nowMs, by } = parameters;
  yield* lockOrganization(organizationId);
  const before = yield* findBudget(parameters);
  if (before === undefined) {
    return { outcome: "not_found" };
  }
  if (version !== 0 && before.version !== version) {
    return { outcome: "version_conflict" };
  }
  // The next node that hears of the change counts it.
  yield* query(
    `UPDATE budgets SET amount = ?, version = version + 1, counted_at_ms = 0, updated_at_ms = ?,
       updated_by = ?
     WHERE organization_id = ? AND name = ?`,
    ...[amount, nowMs, by.name, organizationId, name],
  );
  yield* record(parameters, organizationId, {
    ...{ action: "budget.update", subjectId: before.budgetId, subject: name },
    details: {
      ...detailsOf({ ...before, tokenId: before.token?.id ?? "", amount }),
      before: String(before.amount),
    },
  });
  return { outcome: "updated", budget: yield* changed(parameters) };
}

export function* deleteBudget(parameters: Given<"deleteBudget">): Operation<boolean> {
  const { organizationId, name, nowMs } = parameters;
  yield* lockOrganization(organizationId);
  const [gone] = yield* query<{ budget_id: string }>(
    "DELETE FROM budgets WHERE organization_id = ? AND name = ? RETURNING budget_id",
    ...[organizationId, name],
  );
  if (gone === undefined) {
    return false;
  }
  yield* record(parameters, organizationId, {
    ...{ action: "budget.delete", subjectId: gone.budget_id, subject: name },
  });
  yield* announce(nowMs, { kind: "deployment", id: organizationId });
  return true;
}

export function* countBudgets({
  nowMs,
  intervalMs,
  limit,
}: Given<"countBudgets">): Result<"countBudgets"> {
  // The condition is repeated: another node may have taken one since it was read.
  const due = yield* query<BudgetRow>(
    `UPDATE budgets SET counted_at_ms = ?
     WHERE counted_at_ms <= ? AND budget_id IN (
       SELECT budget_id FROM budgets WHERE counted_at_ms <= ? ORDER BY counted_at_ms LIMIT ?)
     RETURNING ${COLUMNS}`,
    ...[nowMs, nowMs - intervalMs, nowMs - intervalMs, limit],
  );
  for (const row of due) {
    const scope = { ...row, organizationId: row.organization_id, tokenId: row.token_id };
    yield* query(
      `UPDATE budgets SET used = ?, used_from_day = ?, settled = ?, settled_to_day = ?
       WHERE budget_id = ?`,
      ...(yield* countUse(scope, nowMs, row)),
      row.budget_id,
    );
  }
  const spent = yield* query<BudgetRow>(
    `SELECT ${COLUMNS} FROM budgets WHERE used >= amount ORDER BY organization_id, name`,
  );
  const inUse = due.length + spent.length > 0 || (yield* usesBudgets());
  return {
    // One of 0 is spent from the first moment of a period.
    spent: spent.map((row) => toBudget(row, nowMs)).filter(({ used, amount }) => used >= amount),
    counted: due.length,
    inUse,
  };
}

function* usesBudgets(): Operation<boolean> {
  const rows = yield* query("SELECT 1 AS there FROM budgets LIMIT 1");
  return rows.length > 0;
}

/** What was used in the period that is now, in the order of the columns from `used` on. */
function* countUse(
  scope: BudgetScope & Pick<BudgetRecord, "organizationId">,
  nowMs: number,
  before?: Pick<BudgetRow, "settled" | "settled_to_day">,
): Operation<readonly [used: number, fromDay: number, settled: number, settledToDay: number]> {
  const { organizationId, measure, period, deployment, tokenId } = scope;
  const asked = {
    organizationId,
    deployments: deployment === "" ? [] : [deployment],
    tokenIds: tokenId === "" ? [] : [tokenId],
  };
  const { fromDay, toDay } = periodOf(period, nowMs);
  const openDay = Math.max(fromDay, dayOf(nowMs) - 1);
  const settled =
    before?.settled_to_day === openDay
      ? before.settled
      : yield* readAmount({ ...asked, fromDay, toDay: openDay }, measure);
  const open = yield* readAmount({ ...asked, fromDay: openDay, toDay }, measure);
  return [settled + open, fromDay, settled, openDay];
}

/** Tells the nodes of a change, and returns the budget as it is then. */
function* changed(
  asked: Given<"listBudgets"> & { readonly name: string },
): Operation<BudgetRecord> {
  yield* announce(asked.nowMs, { kind: "deployment", id: asked.organizationId });
  const budget = yield* findBudget(asked);
  if (budget === undefined) {
    throw new Error("the budget that was just stored is not there");
  }
  return budget;
}

function detailsOf({
  measure,
  amount,
  period,
  deployment,
  tokenId,
}: BudgetScope & Pick<BudgetRecord, "amount">) {
  return {
    ...{ amount: String(amount), measure, period },
    ...(deployment !== "" && { deployment }),
    ...(tokenId !== "" && { token: tokenId }),
  };
}
