/** `tessera usage`: who used what, as a table, as JSON, or as a file for spreadsheets. */
import type { Command } from "commander";
import {
  type GetUsageResponse,
  GetUsageResponseSchema,
  UsageKey,
  type UsageSum,
} from "../../client/index.ts";
import { csvText } from "../../collections/csv.ts";
import { inUnits } from "../../collections/sizes.ts";
import { type CloudActions, callCommand, option, repeatable } from "../command.ts";
import { usageError } from "../failure.ts";
import { type Table, table } from "../table.ts";

interface UsageFlags {
  readonly by: string;
  readonly from?: string;
  readonly to?: string;
  readonly deployment?: readonly string[];
  readonly token?: readonly string[];
  readonly csv?: boolean;
}

type Key = readonly [word: string, key: UsageKey, of: (sum: UsageSum) => string];

/** What a sum is told apart by: its word, its key in a request, and what is shown of a sum. */
const KEYS: readonly Key[] = [
  ["day", UsageKey.DAY, ({ day }) => day],
  ["deployment", UsageKey.DEPLOYMENT, ({ deployment }) => deployment],
  ["endpoint", UsageKey.ENDPOINT, ({ endpoint }) => endpoint],
  ["token", UsageKey.TOKEN, ({ token }) => (token?.id === "" ? "" : (token?.name ?? ""))],
];

/** What the platform counts: its name, and its value. */
const COUNTED: readonly (readonly [name: string, of: (sum: UsageSum) => number])[] = [
  ["calls", ({ calls }) => Number(calls)],
  ["tasks", ({ tasks }) => Number(tasks)],
  ["run_seconds", ({ runSeconds }) => runSeconds],
  ["gpu_seconds", ({ gpuSeconds }) => gpuSeconds],
  ["bytes_in", ({ bytesIn }) => Number(bytesIn)],
  ["bytes_out", ({ bytesOut }) => Number(bytesOut)],
];

export function usageCommand(actions: CloudActions): Command {
  return callCommand<UsageFlags>("usage", actions, {
    description: "See who used what: calls, tasks, seconds, bytes and units of your own, by day.",
    options: [
      option(
        "--by <keys>",
        "what is told apart: day, deployment, endpoint, token, with commas between",
      ).default("deployment"),
      option("--from <day>", "the first day, of UTC (default: 30 days until the last)"),
      option("--to <day>", "the last day (default: today)"),
      repeatable("--deployment <name>", "only of this one"),
      repeatable("--token <id>", "only of this one"),
      option("--csv", "write it for spreadsheets"),
    ],
    examples: [
      "tessera usage",
      "tessera usage --by day,token --from 2026-11-01 --to 2026-11-30 --csv > november.csv",
      "tessera usage --by endpoint --deployment summarizer --output json",
    ],
    run: async (call, { by, from = "", to = "", deployment = [], token = [], csv }) => {
      const words = by.split(",").map((word) => word.trim());
      const wrong = words.find((word) => !KEYS.some(([known]) => known === word));
      if (wrong !== undefined) {
        const known = KEYS.map(([word]) => word).join(", ");
        throw usageError(`--by ${JSON.stringify(wrong)} is not one of ${known}`);
      }
      const keys = KEYS.filter(([word]) => words.includes(word));
      const { organization } = call;
      const used = await call.client.usage.getUsage({
        ...{ organization, startDay: from, endDay: to, groupBy: keys.map(([, key]) => key) },
        ...{ deployments: [...deployment], tokens: [...token] },
      });
      if (csv && call.output === "table") {
        call.terminal.streams.stdout.write(csvOf(used, keys));
      } else {
        call.show(GetUsageResponseSchema, used, () => tableOf(used, keys));
      }
      if (used.truncated) {
        call.terminal.say("There is more: ask for fewer days, or tell less apart");
      }
    },
  });
}

/** The units that functions have reported, sorted. */
function unitsOf({ sums }: GetUsageResponse): string[] {
  return [...new Set(sums.flatMap(({ units }) => Object.keys(units)))].sort();
}

/** What was reported of a unit, which may be called like what every object inherits. */
function amountOf({ units }: UsageSum, unit: string): number {
  return Object.hasOwn(units, unit) ? (units[unit] ?? 0) : 0;
}

function csvOf(used: GetUsageResponse, keys: readonly Key[]): string {
  const ids = keys.some(([word]) => word === "token") ? ["token_id"] : [];
  const units = unitsOf(used);
  const heading = [
    ...keys.map(([word]) => word),
    ...ids,
    ...COUNTED.map(([name]) => name),
    ...units,
  ];
  const rows = used.sums.map((sum) => [
    ...keys.map(([, , of]) => of(sum)),
    ...ids.map(() => sum.token?.id ?? ""),
    ...COUNTED.map(([, of]) => of(sum)),
    ...units.map((unit) => amountOf(sum, unit)),
  ]);
  return csvText(heading, rows);
}

function tableOf(used: GetUsageResponse, keys: readonly Key[]): Table {
  const units = unitsOf(used);
  const hasGpus = used.sums.some(({ gpuSeconds }) => gpuSeconds > 0);
  return table(
    [
      ...keys.map(([word]) => word.toUpperCase()),
      ...["CALLS", "TASKS", "RUN", ...(hasGpus ? ["GPU"] : []), "IN", "OUT"],
      ...units.map((unit) => unit.toUpperCase()),
    ],
    used.sums.map((sum) => [
      ...keys.map(([word, , of]) => of(sum) || (word === "token" ? nameless(sum) : "")),
      ...[String(sum.calls), String(sum.tasks), seconds(sum.runSeconds)],
      ...(hasGpus ? [seconds(sum.gpuSeconds)] : []),
      ...[inUnits(Number(sum.bytesIn)), inUnits(Number(sum.bytesOut))],
      ...units.map((unit) => String(rounded(amountOf(sum, unit)))),
    ]),
    { empty: `Nothing was used from ${used.startDay} to ${used.endDay}`, drop: ["IN", "OUT"] },
  );
}

/** What stands for a token without a name. */
function nameless({ token }: UsageSum): string {
  return token === undefined || token.id === "" ? "(no token)" : token.id;
}

function seconds(amount: number): string {
  return amount >= 3_600 ? `${rounded(amount / 3_600)} h` : `${rounded(amount)} s`;
}

/** With at most two digits after the point. */
export function rounded(amount: number): number {
  return Number(amount.toFixed(2));
}
