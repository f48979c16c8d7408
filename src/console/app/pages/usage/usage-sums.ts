/** What the page of usage shows, from the sums of an answer. */
import type { GetUsageResponseJson, UsageSumJson } from "../../../../../gen/tessera/v1/usage_pb.js";
import { csvText } from "../../../../collections/csv.ts";
import type { UsageBy } from "../../api/usage-keys.ts";
import type { Line } from "../../ui/line.ts";
import { bytes, count, type Format, seconds } from "../../ui/quantity.ts";

/** What the platform counts: how it is called, in files and for people, and how it is written. */
export const COUNTED: readonly {
  readonly name: string;
  readonly label: string;
  readonly format: Format;
  readonly isBinary?: true;
  of(sum: UsageSumJson): number;
}[] = [
  { name: "calls", label: "Calls run", format: count, of: ({ calls }) => Number(calls ?? 0) },
  { name: "tasks", label: "Tasks", format: count, of: ({ tasks }) => Number(tasks ?? 0) },
  {
    ...{ name: "run_seconds", label: "Run time", format: seconds },
    of: ({ runSeconds }) => Number(runSeconds ?? 0),
  },
  {
    ...{ name: "gpu_seconds", label: "GPU time", format: seconds },
    of: ({ gpuSeconds }) => Number(gpuSeconds ?? 0),
  },
  {
    ...{ name: "bytes_in", label: "Data in", format: bytes, isBinary: true },
    of: ({ bytesIn }) => Number(bytesIn ?? 0),
  },
  {
    ...{ name: "bytes_out", label: "Data out", format: bytes, isBinary: true },
    of: ({ bytesOut }) => Number(bytesOut ?? 0),
  },
];

/** The units that functions reported, sorted. */
export function unitsOf({ sums = [] }: GetUsageResponseJson): readonly string[] {
  return [...new Set(sums.flatMap(({ units = {} }) => Object.keys(units)))].sort();
}

/** A number of a sum: what the platform counts, or a unit. */
function amountOf(sum: UsageSumJson, name: string): number {
  const counted = COUNTED.find((one) => one.name === name);
  if (counted) {
    return counted.of(sum);
  }
  const { units = {} } = sum;
  return Object.hasOwn(units, name) ? Number(units[name]) : 0;
}

/** What was used by one deployment, endpoint or token in all days. */
export interface UsedAmounts {
  readonly key: string;
  readonly name: string;
  readonly sums: readonly UsageSumJson[];
}

export const NO_TOKEN = "without a token";

/** Those who used something, most of the named amount first. */
export function usedBy(
  { sums = [] }: GetUsageResponseJson,
  by: UsageBy,
  measure: string,
): readonly UsedAmounts[] {
  const groups = Map.groupBy(sums, (sum) =>
    by === "token" ? (sum.token?.id ?? "") : (sum[by] ?? ""),
  );
  return [...groups]
    .map(([key, own]) => ({ key, name: nameIn(own[0], by), sums: own }))
    .sort(
      (one, other) =>
        totalOf(other, measure) - totalOf(one, measure) || (one.name < other.name ? -1 : 1),
    );
}

export function totalOf({ sums }: Pick<UsedAmounts, "sums">, measure: string): number {
  return sums.reduce((sum, one) => sum + amountOf(one, measure), 0);
}

function nameIn(sum: UsageSumJson | undefined, by: UsageBy): string {
  return by === "token" ? sum?.token?.name || sum?.token?.id || NO_TOKEN : (sum?.[by] ?? "");
}

/** The days of an answer, such as `2026-11-01`. */
export function daysOf({ startDay = "", endDay = "" }: GetUsageResponseJson): readonly string[] {
  const days: string[] = [];
  for (let timeMs = Date.parse(startDay); timeMs <= Date.parse(endDay); timeMs += 86_400_000) {
    days.push(new Date(timeMs).toISOString().slice(0, 10));
  }
  return days;
}

const COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"] as const;

/** A part of each day's bar for each of those who used most. */
export function linesOf(
  used: readonly UsedAmounts[],
  days: readonly string[],
  measure: string,
): readonly Line[] {
  return used
    .filter((one) => totalOf(one, measure) > 0)
    .slice(0, COLOURS.length)
    .map((one, index) => {
      const amounts = new Map(one.sums.map((sum) => [sum.day, amountOf(sum, measure)]));
      return {
        name: one.name,
        colour: COLOURS[index] ?? COLOURS[0],
        values: days.map((day) => amounts.get(day) ?? 0),
      };
    });
}

/** All of it as CSV. */
export function csvOf(answer: GetUsageResponseJson, by: UsageBy): string {
  const units = unitsOf(answer);
  const ids = by === "token" ? ["token_id"] : [];
  const names = [...COUNTED.map(({ name }) => name), ...units];
  return csvText(
    ["day", by, ...ids, ...names],
    (answer.sums ?? []).map((sum) => [
      ...[sum.day ?? "", by === "token" ? (sum.token?.name ?? "") : (sum[by] ?? "")],
      ...ids.map(() => sum.token?.id ?? ""),
      ...names.map((name) => amountOf(sum, name)),
    ]),
  );
}
