/** Reads of an organization's audit log. */
import { queryOptions } from "@tanstack/react-query";
import { organizations } from "./clients.ts";

/** Events of a deployment that are looked through for its last changes, and for the values before. */
const MAX_HISTORY_EVENTS = 50;

/** The newest changes of a deployment; `version` is its version, with which they are read again. */
export const historyOf = (organization: string, deployment: string, version: number) =>
  queryOptions({
    queryKey: ["history", organization, deployment, version],
    queryFn: async ({ signal }) => {
      const chosen = { subject: deployment, action: "deployment" };
      const request = { organization, ...chosen, pageSize: MAX_HISTORY_EVENTS };
      return (await organizations.listAuditEvents(request, { signal })).auditEvents ?? [];
    },
  });
