/** Reads of alert rules, what has fired, and receivers, again while somebody looks. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { AlertService } from "../../../../gen/tessera/v1/alert_pb.js";
import { PAGES, pagesRefresh } from "./pages.ts";
import { createClient } from "./rpc.ts";

/** Of its own, because the other pages do not call it. */
export const alerts = createClient<typeof AlertService>("tessera.v1.AlertService");

/** How often alerts are read while somebody looks at them. */
const ALERTS_REFRESH_MS = 5_000;
/** Deliveries that are read at once; more come on demand. */
const MAX_DELIVERIES_PER_PAGE = 50;
/** Alerts of the history that the page shows, newest first. */
const MAX_SHOWN_ALERTS = 50;

/** What fires, what is pending, or all that fires or has fired. */
export const alertsOf = (organization: string, state: "firing" | "pending" | "fired") =>
  queryOptions({
    queryKey: ["alerts", organization, state],
    queryFn: async ({ signal }) => {
      const only = state === "fired" ? {} : { [state]: true };
      const asked = { organization, ...only, pageSize: MAX_SHOWN_ALERTS };
      return (await alerts.listAlerts(asked, { signal })).alerts ?? [];
    },
    refetchInterval: ALERTS_REFRESH_MS,
  });

export const rulesOf = (organization: string) =>
  queryOptions({
    queryKey: ["alerts", organization, "rules"],
    queryFn: async ({ signal }) =>
      (await alerts.listAlertRules({ organization }, { signal })).rules ?? [],
    refetchInterval: ALERTS_REFRESH_MS,
  });

export const receiversOf = (organization: string) =>
  queryOptions({
    queryKey: ["alerts", organization, "receivers"],
    queryFn: async ({ signal }) =>
      (await alerts.listAlertReceivers({ organization }, { signal })).receivers ?? [],
    refetchInterval: ALERTS_REFRESH_MS,
  });

/** What receivers were told, the newest first. */
export const toldOf = (organization: string) =>
  infiniteQueryOptions({
    queryKey: ["alerts", organization, "deliveries"],
    queryFn: ({ pageParam, signal }) =>
      alerts.listAlertDeliveries(
        { organization, pageSize: MAX_DELIVERIES_PER_PAGE, pageToken: pageParam },
        { signal },
      ),
    ...PAGES,
    refetchInterval: pagesRefresh(ALERTS_REFRESH_MS),
    select: ({ pages }) => pages.flatMap(({ deliveries = [] }) => deliveries),
  });
