/** Reads who used what. */
import { queryOptions } from "@tanstack/react-query";
import type { UsageService } from "../../../../gen/tessera/v1/usage_pb.js";
import { createClient } from "./rpc.ts";
import type { UsageBy } from "./usage-keys.ts";

/** Of its own, because the other pages do not call it. */
export const usage = createClient<typeof UsageService>("tessera.v1.UsageService");

/** How often usage is read while somebody looks at it: nodes flush theirs every ten seconds. */
const USAGE_REFRESH_MS = 30_000;

const KEYS = {
  deployment: "USAGE_KEY_DEPLOYMENT",
  endpoint: "USAGE_KEY_ENDPOINT",
  token: "USAGE_KEY_TOKEN",
} as const;

const DAY_MS = 86_400_000;

/** The usage of the last `days` days, today included, by day and by one thing more. */
export const usageOf = (organization: string, by: UsageBy, days: number) =>
  queryOptions({
    queryKey: ["usage", organization, by, days],
    queryFn: ({ signal }) => {
      const from = new Date(Date.now() - (days - 1) * DAY_MS).toISOString();
      const [startDay = ""] = from.split("T");
      const asked = { organization, startDay, groupBy: ["USAGE_KEY_DAY" as const, KEYS[by]] };
      return usage.getUsage(asked, { signal });
    },
    refetchInterval: USAGE_REFRESH_MS,
  });

/** How often budgets are read while somebody looks at them: what is used is counted every ten seconds. */
const BUDGETS_REFRESH_MS = 10_000;

export const budgetsOf = (organization: string) =>
  queryOptions({
    queryKey: ["budgets", organization],
    queryFn: async ({ signal }) =>
      (await usage.listBudgets({ organization }, { signal })).budgets ?? [],
    refetchInterval: BUDGETS_REFRESH_MS,
  });
