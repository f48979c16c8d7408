/** The budgets of UsageService: how much of a measure may be used in a day or a month. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import { BudgetPeriod, BudgetSchema, type UsageService } from "../../../gen/tessera/v1/usage_pb.js";
import { faultOfName } from "../../auth/names.ts";
import { problem } from "../../errors.ts";
import { COUNTED_BY_PLATFORM, faultOfUnit } from "../../protocol/units.ts";
import { deed, type Member, memberOf, type Sources } from "../../server/rpc/engine/caller.ts";
import type { Organizations } from "../../storage/accounts/organizations.ts";
import type { Tokens } from "../../storage/accounts/tokens.ts";
import { startOfDay } from "../../storage/days.ts";
import type { BudgetRecord, BudgetStorage } from "../../storage/hosting/budgets.ts";
import { isTaskId } from "../../tasks/id.ts";
import { timestampFromMs } from "../../time/messages.ts";
import { findDeployment } from "../deployment/refusals.ts";
import { changedFields, changedMeanwhile } from "../mask.ts";
import { tokenNotFound } from "../token/visible.ts";
import { invalidField, missing, refuse, violationsOf } from "../violations.ts";
import { shownName } from "./token-name.ts";

/** Budgets of an organization. */
const MAX_BUDGETS = 100;

export interface BudgetOptions extends Sources {
  readonly accounts: Pick<Organizations, "findDeployment"> & Pick<Tokens, "getToken">;
  readonly hosting: Pick<
    BudgetStorage,
    "createBudget" | "listBudgets" | "updateBudget" | "deleteBudget"
  >;
}

type BudgetMethods = "createBudget" | "listBudgets" | "getBudget" | "updateBudget" | "deleteBudget";

export function budgetHandlers(
  options: BudgetOptions,
): Pick<ServiceImpl<typeof UsageService>, BudgetMethods> {
  const { accounts, hosting, now, newId } = options;

  /** Throws: a budget of what does not exist would bound nothing. */
  const isThere = async (member: Member, deployment: string, tokenId: string): Promise<void> => {
    if (deployment !== "") {
      await findDeployment(accounts, member, deployment);
    }
    const { organizationId } = member;
    if (
      tokenId !== "" &&
      (!isTaskId(tokenId) || (await accounts.getToken({ organizationId, tokenId })) === undefined)
    ) {
      throw tokenNotFound(tokenId);
    }
  };

  return {
    async createBudget({ budget = missing() }, ctx) {
      const member = memberOf(ctx);
      const { name, measure, amount, deployment, token: tokenId } = budget;
      refuse(
        violationsOf({
          "budget.name": faultOfName(name),
          "budget.measure": faultOfMeasure(measure),
          "budget.amount": amount === undefined ? "is missing" : undefined,
        }),
      );
      await isThere(member, deployment, tokenId);
      const created = await hosting.createBudget({
        ...deed(member.by, options),
        ...{ organizationId: member.organizationId, name, budgetId: newId(), limit: MAX_BUDGETS },
        ...{ measure, amount: amount ?? missing(), deployment, tokenId },
        period: budget.period === BudgetPeriod.DAY ? "day" : "month",
      });
      switch (created.outcome) {
        case "created":
          return toMessage(created.budget, member);
        case "name_taken":
          throw problem(
            "BUDGET_EXISTS",
            `there is a budget ${name}: change it, or choose another name`,
          );
        case "limit":
          throw problem(
            "LIMIT_REACHED",
            `the organization has ${MAX_BUDGETS} budgets: delete one first`,
          );
      }
    },

    async listBudgets(_req, ctx) {
      const member = memberOf(ctx);
      return { budgets: (await list(member)).map((one) => toMessage(one, member)) };
    },

    async getBudget({ name }, ctx) {
      const member = memberOf(ctx);
      const found = (await list(member)).find((one) => one.name === name);
      return toMessage(found ?? lacking(name), member);
    },

    async updateBudget({ budget = missing(), updateMask: mask }, ctx) {
      const member = memberOf(ctx);
      changedFields(BudgetSchema, { message: budget, mask }, ["amount"]);
      const { name, amount, version } = budget;
      if (amount === undefined) {
        throw invalidField("budget.amount", "is missing");
      }
      const { organizationId, by } = member;
      const key = { organizationId, name };
      const updated = await hosting.updateBudget({
        ...{ ...deed(by, options), ...key, amount, version },
      });
      switch (updated.outcome) {
        case "updated":
          return toMessage(updated.budget, member);
        case "not_found":
          return lacking(name);
        case "version_conflict":
          throw changedMeanwhile(`budget ${name}`);
      }
    },

    async deleteBudget({ name }, ctx) {
      const { organizationId, by } = memberOf(ctx);
      if (!(await hosting.deleteBudget({ ...deed(by, options), organizationId, name }))) {
        lacking(name);
      }
      return {};
    },
  };

  function list({ organizationId }: Member): Promise<BudgetRecord[]> {
    return hosting.listBudgets({ organizationId, nowMs: now() });
  }
}

function faultOfMeasure(measure: string): string | undefined {
  const isKnown = COUNTED_BY_PLATFORM.has(measure) || faultOfUnit(measure, 0) === undefined;
  return isKnown
    ? undefined
    : `must be ${[...COUNTED_BY_PLATFORM].join(", ")}, or a unit: a letter, and then up to 63 letters, digits and underscores`;
}

function toMessage(
  { period, token, fromDay, toDay, ...budget }: BudgetRecord,
  member: Member,
): MessageInitShape<typeof BudgetSchema> {
  const { name, measure, amount, deployment, used, version, createdBy, updatedBy } = budget;
  return {
    ...{ name, measure, amount, deployment, used, version, createdBy, updatedBy },
    period: period === "day" ? BudgetPeriod.DAY : BudgetPeriod.MONTH,
    ...(token && { token: token.id, tokenName: shownName(token, member) }),
    periodStart: timestampFromMs(startOfDay(fromDay)),
    periodEnd: timestampFromMs(startOfDay(toDay)),
    createdAt: timestampFromMs(budget.createdAtMs),
    updatedAt: timestampFromMs(budget.updatedAtMs),
  };
}

/** Throws BUDGET_NOT_FOUND. */
function lacking(name: string): never {
  throw problem("BUDGET_NOT_FOUND", `there is no budget ${JSON.stringify(name)}`);
}
