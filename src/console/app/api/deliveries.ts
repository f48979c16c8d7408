/** Deliveries to webhooks and to receivers of alerts: their state, what they are about, and the answers. */
import type { AlertJson } from "../../../../gen/tessera/v1/alert_pb.js";
import type {
  WebhookAnswerJson,
  WebhookDeliveryJson,
  WebhookJson,
} from "../../../../gen/tessera/v1/webhook_pb.js";
import { lastOf, runsOf } from "./runs.ts";

/** An answer of a receiver in a few words, how many times in a row it came, and when last. */
export interface FoldedAnswer {
  readonly text: string;
  readonly count: number;
  readonly lastAt: string | undefined;
}

/** An answer in a few words: why there was none, or its status with the beginning of its text. */
export const answerText = ({ error, status, text }: WebhookAnswerJson): string =>
  error || [status, text].filter(Boolean).join(" ");

/** What a receiver answered, oldest first; equal answers one after another are one. */
export function answersOf({ answers = [] }: WebhookDeliveryJson): readonly FoldedAnswer[] {
  return runsOf(answers, (answer, before) => answerText(answer) === answerText(before)).map(
    (run) => ({ text: answerText(run[0]), count: run.length, lastAt: lastOf(run).time }),
  );
}

/** The last answer to a delivery; empty before the first. */
export const answerOf = (delivery: WebhookDeliveryJson): string =>
  answersOf(delivery).at(-1)?.text ?? "";

/** What deliveries are sent to: a webhook, or a receiver of alerts. */
export type Target = Pick<WebhookJson, "name" | "disabled" | "pausedUntil" | "failures">;

/**
 * When a delivery is attempted next: once it is due and its target is no longer paused. Undefined
 * where that is at once.
 */
export const nextAttemptOf = (
  { nextAttemptAt }: WebhookDeliveryJson,
  target: Target | undefined,
): string | undefined =>
  [nextAttemptAt, target?.pausedUntil]
    .filter((at) => at !== undefined)
    .reduce<string | undefined>(
      (last, at) => (last !== undefined && Date.parse(last) > Date.parse(at) ? last : at),
      undefined,
    );

/** Why a target fails: the answer that came last to its deliveries. Undefined while it does not fail. */
export const causeOf = (
  { name, failures = 0 }: Target,
  deliveries: readonly WebhookDeliveryJson[],
): FoldedAnswer | undefined =>
  failures === 0 ? undefined : latestAnswerOf(deliveries.filter((one) => one.webhook === name));

/** The answer that came last to any of these deliveries. */
export const latestAnswerOf = (
  deliveries: readonly WebhookDeliveryJson[],
): FoldedAnswer | undefined =>
  deliveries
    .flatMap((one) => answersOf(one).slice(-1))
    .reduce<FoldedAnswer | undefined>(
      (last, one) => ((last?.lastAt ?? "") > (one.lastAt ?? "") ? last : one),
      undefined,
    );

/** The state of a delivery in a word: one that waits after an attempt is retried. */
export function deliveryStateOf({ state, attempts = 0 }: WebhookDeliveryJson): string {
  const word = (state ?? WAITING).replace("WEBHOOK_DELIVERY_STATE_", "").toLowerCase();
  return word === "waiting" && attempts > 0 ? "retrying" : word;
}

const WAITING = "WEBHOOK_DELIVERY_STATE_WAITING";

/** The id of the alert that a delivery is about, the first of them where it is about several. */
export const alertIdOf = ({ id = "" }: WebhookDeliveryJson): string =>
  id.split(/-(?:firing|cleared)-/)[0] ?? "";

/**
 * The rule whose alerts a delivery is about. The rule of an alert that the history no longer has is
 * not known.
 */
export const ruleOf = (delivery: WebhookDeliveryJson, known: readonly AlertJson[]): string =>
  known.find(({ id }) => id === alertIdOf(delivery))?.rule ?? "an alert";
