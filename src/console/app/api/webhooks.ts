/** Reads of webhooks and of what they were told, again while somebody looks. */
import { queryOptions } from "@tanstack/react-query";
import type { WebhookDeliveryJson, WebhookService } from "../../../../gen/tessera/v1/webhook_pb.js";
import { createClient } from "./rpc.ts";
import type { TaskName } from "./tasks.ts";

/** Of its own, because the other pages do not call it. */
export const webhooks = createClient<typeof WebhookService>("tessera.v1.WebhookService");

/** How often webhooks and their deliveries are read while somebody looks at them. */
const WEBHOOKS_REFRESH_MS = 3_000;
/** Deliveries that the page shows, newest first. */
const MAX_SHOWN_DELIVERIES = 50;

export const webhooksOf = (organization: string, deployment: string) =>
  queryOptions({
    queryKey: ["webhooks", organization, deployment],
    queryFn: async ({ signal }) =>
      (await webhooks.listWebhooks({ organization, deployment }, { signal })).webhooks ?? [],
    refetchInterval: WEBHOOKS_REFRESH_MS,
  });

export const deliveriesOf = (organization: string, deployment: string) =>
  queryOptions({
    queryKey: ["webhook-deliveries", organization, deployment],
    queryFn: async ({ signal }) => {
      const asked = { organization, deployment, pageSize: MAX_SHOWN_DELIVERIES };
      return (await webhooks.listWebhookDeliveries(asked, { signal })).deliveries ?? [];
    },
    refetchInterval: WEBHOOKS_REFRESH_MS,
  });

/** What webhooks were told of one task. */
export const deliveriesOfTask = ({ organization, deployment, taskId }: TaskName) =>
  queryOptions({
    queryKey: ["webhook-deliveries", organization, deployment, taskId],
    queryFn: async ({ signal }) => {
      const asked = { organization, deployment, taskId };
      return (await webhooks.listWebhookDeliveries(asked, { signal })).deliveries ?? [];
    },
  });

/** The last answer of a receiver in a few words. */
export function answerOf({ answers = [] }: WebhookDeliveryJson): string {
  const last = answers.at(-1);
  return last === undefined ? "" : last.error || `${last.status ?? 0} ${last.text ?? ""}`.trim();
}
