/** What was sent to webhooks and to receivers of alerts, what they answered, and the way to send it again. */
import { type ComponentProps, Fragment, type ReactNode } from "react";
import type { WebhookDeliveryJson } from "../../../../gen/tessera/v1/webhook_pb.js";
import {
  answersOf,
  causeOf,
  deliveryStateOf,
  type FoldedAnswer,
  isHeld,
  type Target,
} from "../api/deliveries.ts";
import { Button, ShowMore } from "./button.tsx";
import { DataTable } from "./data-table.tsx";
import { Status, type Tone } from "./status.tsx";
import { Time, useIsDueLater } from "./time.tsx";
import { secondText } from "./time-range.ts";

interface DeliveriesProps {
  /** The webhooks or receivers that they are sent to. */
  readonly targets: readonly Target[];
  /** Newest first; without any, nothing is shown. */
  readonly deliveries: readonly WebhookDeliveryJson[];
  /** The query of the deliveries. */
  readonly list: ComponentProps<typeof ShowMore>["of"];
  /** Whether all answers are shown. Default: only the last one. */
  readonly allAnswers?: boolean;
  /** What one is about. */
  messageOf(delivery: WebhookDeliveryJson): ReactNode;
  /** What the targets are called, such as `Webhook`. Default: all deliveries are for one target. */
  readonly toWhat?: string;
  sendAgain(deliveryId: string): void;
}

export function Deliveries({
  targets,
  deliveries,
  list,
  allAnswers = false,
  messageOf,
  toWhat,
  sendAgain,
}: DeliveriesProps) {
  if (deliveries.length === 0) {
    return null;
  }
  const held = new Set(targets.filter(isHeld).map(({ name }) => name));
  const causes = new Map(targets.map((one) => [one.name, causeOf(one, deliveries)?.text]));
  /** A target that fails shows its cause: an answer that only repeats it is left out here. */
  const answersBeside = (one: WebhookDeliveryJson): readonly FoldedAnswer[] => {
    const all = answersOf(one);
    const told = allAnswers ? all : all.slice(-1);
    const cause = causes.get(one.webhook);
    return told.some(({ text }) => text !== cause) ? told : [];
  };
  const hasAnswers = deliveries.some((one) => answersBeside(one).length > 0);
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries</h2>
      <DataTable
        label="Deliveries, newest first"
        items={deliveries}
        keyOf={({ id = "" }) => id}
        columns={[
          { name: "Message", grows: !hasAnswers, cell: messageOf },
          ...(toWhat === undefined
            ? []
            : [
                {
                  name: toWhat,
                  cell: ({ webhook }: WebhookDeliveryJson) => webhook || "deleted",
                },
              ]),
          {
            name: "State",
            cell: (one) => <DeliveryState of={one} isHeld={held.has(one.webhook)} />,
          },
          ...(hasAnswers
            ? [
                {
                  name: allAnswers ? "Responses" : "Last response",
                  grows: true,
                  narrow: "unnamed" as const,
                  cell: (one: WebhookDeliveryJson) => (
                    <Answers told={answersBeside(one)} all={allAnswers} />
                  ),
                },
              ]
            : []),
          {
            ...{ name: "Created", narrow: "unnamed" },
            cell: ({ createdAt }) => createdAt !== undefined && <Time at={createdAt} />,
          },
        ]}
        actions={({ id = "", webhook }) =>
          webhook && (
            <Button kind="quiet" aria-label={`Send again: ${id}`} onClick={() => sendAgain(id)}>
              Send again
            </Button>
          )
        }
      />
      <ShowMore of={list} />
    </section>
  );
}

/** The tones of the states of deliveries; of any other, it is idle. */
export const DELIVERY_TONES: Readonly<Record<string, Tone>> = {
  delivered: "done",
  failed: "bad",
  retrying: "warning",
};

interface DeliveryStateProps {
  readonly of: WebhookDeliveryJson;
  /** Nothing is sent to its target for now, even where it is due. */
  readonly isHeld: boolean;
}

function DeliveryState({ of, isHeld: isBehind }: DeliveryStateProps) {
  const { attempts = 0, nextAttemptAt } = of;
  const state = deliveryStateOf(of);
  const isWaiting = state === "waiting" || state === "retrying";
  const dueAt = isWaiting && !isBehind ? nextAttemptAt : undefined;
  const showsTime = useIsDueLater(dueAt);
  const number = isWaiting
    ? attempts > 0 && `attempt ${attempts + 1}`
    : attempts > 1 && `${attempts} attempts`;
  return (
    <>
      <Status tone={DELIVERY_TONES[state] ?? "idle"}>{state}</Status>
      {(number || showsTime) && (
        <span className="secondary">
          {number || "next attempt"} {showsTime && dueAt !== undefined && <Time at={dueAt} />}
        </span>
      )}
    </>
  );
}

/** Characters of an answer in a row. */
const MAX_ANSWER_CHARACTERS = 200;

interface AnswersProps {
  readonly told: readonly FoldedAnswer[];
  /** Whether each is shown with how often it came, and when last. */
  readonly all: boolean;
}

/** What its receiver answered: the last time, or each time, the oldest first; how often is beside its state. */
function Answers({ told, all }: AnswersProps) {
  return told.map(({ text, count, lastAt = "" }, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: answers have no other name, and stay in order
    <Fragment key={index}>
      <span className="reason" title={text}>
        {text.slice(0, MAX_ANSWER_CHARACTERS)}
      </span>
      {all && count > 1 && (
        <span className="secondary">
          {told.length > 1 && `${count} times, `}
          last {secondText(Date.parse(lastAt))}
        </span>
      )}
    </Fragment>
  ));
}
