/** Reads of webhooks and of what they were told, again while somebody looks. */
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import type { WebhookService } from "../../../../gen/tessera/v1/webhook_pb.js";
import { PAGES, pagesRefresh } from "./pages.ts";
import { createClient } from "./rpc.ts";
import type { TaskName } from "./tasks.ts";

/** Of its own, because the other pages do not call it. */
export const webhooks = createClient<typeof WebhookService>("tessera.v1.WebhookService");

/** How often webhooks and their deliveries are read while somebody looks at them. */
const WEBHOOKS_REFRESH_MS = 3_000;

/** Deliveries that are read at once; more come on demand. */
const MAX_DELIVERIES_PER_PAGE = 50;

export const webhooksOf = (organization: string, deployment: string) =>
  queryOptions({
    queryKey: ["webhooks", organization, deployment],
    queryFn: async ({ signal }) =>
      (await webhooks.listWebhooks({ organization, deployment }, { signal })).webhooks ?? [],
    refetchInterval: WEBHOOKS_REFRESH_MS,
  });

/** The webhooks of an organization whose latest attempt failed. */
export const failingWebhooksOf = (organization: string) =>
  queryOptions({
    queryKey: ["webhooks", organization, "failing"],
    queryFn: async ({ signal }) =>
      (await webhooks.listFailingWebhooks({ organization }, { signal })).webhooks ?? [],
  });

/** The deliveries of a deployment, or of one of its webhooks, the newest first. */
export const deliveriesOf = (organization: string, deployment: string, webhook = "") =>
  infiniteQueryOptions({
    queryKey: ["webhook-deliveries", organization, deployment, { webhook }],
    queryFn: ({ pageParam, signal }) =>
      webhooks.listWebhookDeliveries(
        {
          ...{ organization, deployment, webhook, pageToken: pageParam },
          pageSize: MAX_DELIVERIES_PER_PAGE,
        },
        { signal },
      ),
    ...PAGES,
    refetchInterval: pagesRefresh(WEBHOOKS_REFRESH_MS),
    select: ({ pages }) => pages.flatMap(({ deliveries = [] }) => deliveries),
  });

/** The deliveries of one task to webhooks. */
export const deliveriesOfTask = ({ organization, deployment, taskId }: TaskName) =>
  queryOptions({
    queryKey: ["webhook-deliveries", organization, deployment, taskId],
    queryFn: async ({ signal }) => {
      const asked = { organization, deployment, taskId };
      return (await webhooks.listWebhookDeliveries(asked, { signal })).deliveries ?? [];
    },
  });
