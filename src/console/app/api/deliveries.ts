/** What was sent to webhooks and to receivers of alerts: how it stands, what it tells of, and what they answered. */
import type { AlertJson } from "../../../../gen/tessera/v1/alert_pb.js";
import type { WebhookDeliveryJson, WebhookJson } from "../../../../gen/tessera/v1/webhook_pb.js";

/** An answer of a receiver in a few words, how often in a row it was the same, and when last. */
export interface FoldedAnswer {
  readonly text: string;
  readonly count: number;
  readonly lastAt: string | undefined;
}

/** What a receiver answered, oldest first; equal answers one after another are one. */
export function answersOf({ answers = [] }: WebhookDeliveryJson): readonly FoldedAnswer[] {
  const folded: FoldedAnswer[] = [];
  for (const { error, status = 0, text = "", time: lastAt } of answers) {
    const said = error || `${status} ${text}`.trim();
    const last = folded.at(-1);
    if (last?.text === said) {
      folded[folded.length - 1] = { text: said, count: last.count + 1, lastAt };
    } else {
      folded.push({ text: said, count: 1, lastAt });
    }
  }
  return folded;
}

/** The last of them; empty before the first. */
export const answerOf = (delivery: WebhookDeliveryJson): string =>
  answersOf(delivery).at(-1)?.text ?? "";

/** What deliveries are sent to: a webhook, or a receiver of alerts. */
export type Target = Pick<WebhookJson, "name" | "disabled" | "pausedUntil" | "failures">;

/** Whether nothing is sent to it now, when each of its deliveries may be due. */
export const isHeld = ({ disabled = false, pausedUntil }: Target): boolean =>
  disabled || pausedUntil !== undefined;

/** The answer that came last to deliveries of something that fails; undefined where it does not. */
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

/**
 * The rule that a delivery tells of: its id begins with that of the first of its alerts. An alert
 * that is older than those of the history names none.
 */
export function ruleOf({ id = "" }: WebhookDeliveryJson, known: readonly AlertJson[]): string {
  const [alertId] = id.split(/-(?:firing|cleared)-/);
  return known.find((alert) => alert.id === alertId)?.rule ?? "an alert";
}
