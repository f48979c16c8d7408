/** Webhooks and their deliveries as messages. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  AlertTransition,
  type WebhookAnswerSchema,
  type WebhookDeliverySchema,
  WebhookDeliveryState,
  WebhookEvent,
  type WebhookSchema,
} from "../../../gen/tessera/v1/webhook_pb.js";
import { keyWith } from "../../collections/key-with.ts";
import type { AlertTransition as Transition } from "../../storage/hosting/alerts.ts";
import type {
  DeliveryAnswer,
  DeliveryRecord,
  DeliveryState,
  TaskEnd,
  WebhookRecord,
} from "../../storage/hosting/webhooks.ts";
import { durationFromMs, timestampFromMs } from "../../time/messages.ts";

const EVENTS = {
  success: WebhookEvent.TASK_SUCCESS,
  failure: WebhookEvent.TASK_FAILURE,
  cancelled: WebhookEvent.TASK_CANCELLED,
} as const satisfies Record<TaskEnd, WebhookEvent>;

const TRANSITIONS = {
  firing: AlertTransition.FIRING,
  cleared: AlertTransition.CLEARED,
} as const satisfies Record<Transition, AlertTransition>;

/** All ends that a webhook may hear of. */
const TASK_ENDS = Object.keys(EVENTS) as readonly TaskEnd[];

const STATES = {
  waiting: WebhookDeliveryState.WAITING,
  delivered: WebhookDeliveryState.DELIVERED,
  failed: WebhookDeliveryState.FAILED,
} as const satisfies Record<DeliveryState, WebhookDeliveryState>;

/** The ends that a request names; all where it names none. */
export function endsOf(events: readonly WebhookEvent[]): readonly TaskEnd[] {
  return events.length === 0 ? TASK_ENDS : TASK_ENDS.filter((end) => events.includes(EVENTS[end]));
}

/** The state of a filter; undefined for any. */
export function stateOf(asked: WebhookDeliveryState): DeliveryState | undefined {
  return keyWith<DeliveryState, WebhookDeliveryState>(STATES, asked);
}

export function toWebhookMessage(
  record: WebhookRecord,
  nowMs: number,
): MessageInitShape<typeof WebhookSchema> {
  const { name, url, ends, endpoint, namedOnly, disabled, createdBy, failures, waiting, version } =
    record;
  return {
    ...{ name, url, endpoint, namedOnly, createdBy, failures, waiting, version },
    events: ends.map((end) => EVENTS[end]),
    createdAt: timestampFromMs(record.createdAtMs),
    ...(disabled && {
      disabled: true,
      disabledReason: disabled.reason,
      disabledAt: timestampFromMs(disabled.atMs),
    }),
    ...(record.pausedUntilMs > nowMs && { pausedUntil: timestampFromMs(record.pausedUntilMs) }),
    ...(record.rotatedUntilMs > nowMs && { rotatedUntil: timestampFromMs(record.rotatedUntilMs) }),
  };
}

export function toDeliveryMessage(
  record: DeliveryRecord,
): MessageInitShape<typeof WebhookDeliverySchema> {
  const { deliveryId, webhook, end, alert, taskId, endpoint, state, attempts, nextAtMs, body } =
    record;
  return {
    ...{ id: deliveryId, webhook, taskId, endpoint, attempts },
    state: STATES[state],
    createdAt: timestampFromMs(record.createdAtMs),
    ...(end && { event: EVENTS[end] }),
    ...(alert && { alert: TRANSITIONS[alert] }),
    ...(state === "waiting" && nextAtMs > 0 && { nextAttemptAt: timestampFromMs(nextAtMs) }),
    ...(body !== undefined && { body }),
    answers: record.answers.map(toAnswerMessage),
  };
}

export function toAnswerMessage({
  atMs,
  tookMs,
  status,
  text,
  error,
}: DeliveryAnswer): MessageInitShape<typeof WebhookAnswerSchema> {
  return {
    ...{ status, text, error },
    time: timestampFromMs(atMs),
    took: durationFromMs(tookMs),
  };
}
