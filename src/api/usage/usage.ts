/** UsageService: who used what, and the budgets of it. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  UsageKey as KeyMessage,
  type UsageService,
  type UsageSumSchema,
} from "../../../gen/tessera/v1/usage_pb.js";
import { type Member, memberOf } from "../../server/rpc/engine/caller.ts";
import { dayOf, KEPT_DAYS, startOfDay } from "../../storage/days.ts";
import type { HostingStorage } from "../../storage/hosting/hosting.ts";
import type { UsageKey, UsageSum } from "../../storage/hosting/usage.ts";
import { isOnCalendar } from "../../time/calendar.ts";
import { invalidField } from "../violations.ts";
import { type BudgetOptions, budgetHandlers } from "./budgets.ts";
import { shownName } from "./token-name.ts";

/** Sums in an answer. */
const MAX_SUMS = 10_000;

/** The days of a request that names none. */
const DEFAULT_DAYS = 30;

interface UsageServiceOptions extends BudgetOptions {
  readonly hosting: BudgetOptions["hosting"] & Pick<HostingStorage, "readUsage">;
}

const KEYS: ReadonlyMap<KeyMessage, UsageKey> = new Map([
  [KeyMessage.DAY, "day"],
  [KeyMessage.DEPLOYMENT, "deployment"],
  [KeyMessage.ENDPOINT, "endpoint"],
  [KeyMessage.TOKEN, "token"],
] as const);

export function usageService(options: UsageServiceOptions): ServiceImpl<typeof UsageService> {
  const { hosting, now } = options;
  return {
    ...budgetHandlers(options),

    async getUsage(req, ctx) {
      const member = memberOf(ctx);
      const lastDay = readDay("end_day", req.endDay) ?? dayOf(now());
      const firstDay = readDay("start_day", req.startDay) ?? lastDay - DEFAULT_DAYS + 1;
      if (firstDay > lastDay) {
        throw invalidField("start_day", "is after the end_day");
      }
      if (lastDay - firstDay >= KEPT_DAYS) {
        throw invalidField("start_day", `is more than ${KEPT_DAYS} days before the end_day`);
      }
      const sums = await hosting.readUsage({
        organizationId: member.organizationId,
        fromDay: firstDay,
        toDay: lastDay + 1,
        by: [...KEYS].flatMap(([key, by]) => (req.groupBy.includes(key) ? [by] : [])),
        deployments: req.deployments,
        tokenIds: req.tokens,
        limit: MAX_SUMS + 1,
      });
      return {
        sums: sums.slice(0, MAX_SUMS).map((sum) => toMessage(sum, member)),
        truncated: sums.length > MAX_SUMS,
        startDay: textOfDay(firstDay),
        endDay: textOfDay(lastDay),
      };
    },
  };
}

function toMessage(
  { day, deployment = "", endpoint = "", token, ...used }: UsageSum,
  member: Member,
): MessageInitShape<typeof UsageSumSchema> {
  return {
    day: day === undefined ? "" : textOfDay(day),
    ...{ deployment, endpoint },
    ...(token && { token: { id: token.id, name: shownName(token, member) } }),
    calls: BigInt(used.calls),
    tasks: BigInt(used.tasks),
    runSeconds: used.runMs / 1_000,
    gpuSeconds: used.gpuMs / 1_000,
    bytesIn: BigInt(used.bytesIn),
    bytesOut: BigInt(used.bytesOut),
    units: { ...used.units },
  };
}

/** A day as it is written; undefined: none is named. */
function readDay(field: string, text: string): number | undefined {
  if (text === "") {
    return undefined;
  }
  if (!isOnCalendar(`${text}T00:00:00Z`)) {
    throw invalidField(field, `${text} is no day`);
  }
  return dayOf(Date.parse(text));
}

function textOfDay(day: number): string {
  return new Date(startOfDay(day)).toISOString().slice(0, "2026-11-01".length);
}
