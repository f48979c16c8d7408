/** `tessera budget`: how much of a measure of usage may be had in a day or a month. */
import type { Command } from "commander";
import {
  type Budget,
  BudgetPeriod,
  BudgetSchema,
  ListBudgetsResponseSchema,
} from "../../client/index.ts";
import { type CloudActions, callCommand, deletion, group, option } from "../command.ts";
import { usageError } from "../failure.ts";
import { fields, moment } from "../output.ts";
import { type Table, table } from "../table.ts";
import { rounded } from "./usage.ts";

const NAME = ["<name>", "the budget's name"] as const;

const PERIODS = { day: BudgetPeriod.DAY, month: BudgetPeriod.MONTH } as const;

interface BudgetFlags {
  readonly period?: keyof typeof PERIODS;
  readonly deployment?: string;
  readonly token?: string;
}

export const budgetCommand = group(
  "budget",
  "Bound what is used in a day or a month: calls, seconds, units.",
  [listCommand, createCommand, updateCommand, deleteCommand],
);

function listCommand(actions: CloudActions): Command {
  return callCommand("list", actions, {
    description: "List the budgets of the organization, and how much of them is used.",
    examples: ["tessera budget list", "tessera budget list --output json"],
    run: async (call) => {
      const { organization, client } = call;
      const found = await client.usage.listBudgets({ organization });
      call.show(ListBudgetsResponseSchema, found, ({ budgets }) => budgetTable(budgets));
    },
  });
}

function createCommand(actions: CloudActions): Command {
  return callCommand<BudgetFlags>("create", actions, {
    description: "Make a budget. When it is spent, new calls and submits of what it bounds fail.",
    arguments: [
      NAME,
      [
        "<measure>",
        "calls, tasks, run_seconds, gpu_seconds, bytes_in, bytes_out, or a unit of your own",
      ],
      ["<amount>", "how much of it may be used in a period"],
    ],
    options: [
      option("--period <time>", "the time in which it may be used").choices(Object.keys(PERIODS)),
      option("--deployment <name>", "what this one uses (default: all)"),
      option("--token <id>", "what callers with this one use (default: all)"),
    ],
    examples: [
      "tessera budget create gpus gpu_seconds 36000",
      "tessera budget create trial calls 100 --period day --token 0192f0c1-…",
    ],
    run: async (call, flags, [name = "", measure = "", text = ""]) => {
      const { organization, client } = call;
      const { period = "month", deployment = "", token = "" } = flags;
      const created = await client.usage.createBudget({
        organization,
        budget: {
          ...{ name, measure, amount: amountOf(text), period: PERIODS[period] },
          ...{ deployment, token },
        },
      });
      call.show(BudgetSchema, created, budgetText);
    },
  });
}

function updateCommand(actions: CloudActions): Command {
  return callCommand("update", actions, {
    description: "Change the amount of a budget, also to less than what is used.",
    arguments: [NAME, ["<amount>", "how much may be used in a period"]],
    examples: ["tessera budget update gpus 72000"],
    run: async (call, _flags, [name = "", text = ""]) => {
      const { organization, client } = call;
      const budget = { name, amount: amountOf(text) };
      const updated = await client.usage.updateBudget({ organization, budget });
      call.show(BudgetSchema, updated, budgetText);
    },
  });
}

function deleteCommand(actions: CloudActions): Command {
  return deletion(actions, {
    description: "Delete a budget. Nothing is refused because of it any more.",
    argument: NAME,
    thing: "budget",
    examples: ["tessera budget delete gpus --yes"],
    remove: ({ client, organization }, name) => client.usage.deleteBudget({ organization, name }),
  });
}

function amountOf(text: string): number {
  const amount = text.trim() === "" ? Number.NaN : Number(text);
  if (!(amount >= 0)) {
    throw usageError(`the amount ${JSON.stringify(text)} is no number from 0 on`);
  }
  return amount;
}

function budgetTable(budgets: readonly Budget[]): Table {
  return table(
    ["NAME", "MEASURE", "USED", "AMOUNT", "SHARE", "OF", "ENDS"],
    budgets.map((one) => [
      ...[one.name, one.measure, String(rounded(one.used)), String(one.amount ?? 0)],
      ...[shareText(one), scopeText(one), moment(one.periodEnd)],
    ]),
    { empty: "No budgets: tessera budget create", drop: ["ENDS", "OF"] },
  );
}

function budgetText(budget: Budget): string {
  return fields([
    ["name", budget.name],
    ["bounds", scopeText(budget)],
    ["amount", `${budget.amount ?? 0} ${budget.measure} a ${periodText(budget)}`],
    ["used", `${rounded(budget.used)} (${shareText(budget)})`],
    ["period", `${moment(budget.periodStart)} to ${moment(budget.periodEnd)}`],
    ["created", `${moment(budget.createdAt)} by ${budget.createdBy}`],
    ["updated", `${moment(budget.updatedAt)} by ${budget.updatedBy}`],
  ]);
}

function periodText({ period }: Budget): string {
  return period === BudgetPeriod.DAY ? "day" : "month";
}

/** Whose use it bounds. */
function scopeText({ deployment, token, tokenName }: Budget): string {
  const parts = [
    ...(deployment === "" ? [] : [`deployment ${deployment}`]),
    ...(token === "" ? [] : [`token ${tokenName || token}`]),
  ];
  return parts.join(", ") || "organization";
}

function shareText({ used, amount = 0 }: Budget): string {
  return used >= amount ? "spent" : `${Math.floor((100 * used) / amount)} %`;
}
