/** What webhooks and receivers of alerts were told, what they answered, and the way to send it again. */
import type { ReactNode } from "react";
import type { WebhookDeliveryJson } from "../../../../gen/tessera/v1/webhook_pb.js";
import { answersOf, deliveryStateOf } from "../api/webhooks.ts";
import { Button } from "./button.tsx";
import { DataTable } from "./data-table.tsx";
import { Status } from "./status.tsx";
import { Time } from "./time.tsx";

/** Deliveries that a page shows at first, newest first, and how many more each time. */
export const MAX_DELIVERIES_PER_STEP = 50;

interface DeliveriesProps {
  /** Newest first; without any, nothing is shown. */
  readonly deliveries: readonly WebhookDeliveryJson[];
  readonly hasMore: boolean;
  onMore(): void;
  /** Whether each answer is shown, and not the last alone. */
  readonly allAnswers?: boolean;
  /** What one tells of, and whom. */
  messageOf(delivery: WebhookDeliveryJson): ReactNode;
  sendAgain(deliveryId: string): void;
}

export function Deliveries({
  deliveries,
  hasMore,
  onMore,
  allAnswers = false,
  messageOf,
  sendAgain,
}: DeliveriesProps) {
  if (deliveries.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries</h2>
      <DataTable
        label="Deliveries, newest first"
        items={deliveries}
        keyOf={({ id = "" }) => id}
        columns={[
          { name: "Message", cell: messageOf },
          { name: "State", cell: (one) => <DeliveryState of={one} /> },
          {
            name: allAnswers ? "Answers" : "Answer",
            cell: (one) => <Answers of={one} all={allAnswers} />,
          },
          {
            name: "Created",
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
      {hasMore && (
        <p>
          <Button onClick={onMore}>Show more</Button>
        </p>
      )}
    </section>
  );
}

/** What is due sooner is as good as under way. */
const SOON_MS = 5_000;

const TONES: Readonly<Record<string, "good" | "bad">> = { delivered: "good", failed: "bad" };

function DeliveryState({ of }: { readonly of: WebhookDeliveryJson }) {
  const { attempts = 0, nextAttemptAt } = of;
  const state = deliveryStateOf(of);
  return (
    <>
      <Status tone={TONES[state] ?? "working"}>{state}</Status>
      {attempts > 1 && <span className="secondary">{attempts} attempts</span>}
      {nextAttemptAt !== undefined && Date.parse(nextAttemptAt) > Date.now() + SOON_MS && (
        <span className="secondary">
          sent again <Time at={nextAttemptAt} />
        </span>
      )}
    </>
  );
}

/** Characters of an answer in a row. */
const MAX_ANSWER_CHARACTERS = 200;

/** What its receiver answered: the last time, or each time, of which the oldest is first. */
function Answers({ of, all }: { readonly of: WebhookDeliveryJson; readonly all: boolean }) {
  const told = answersOf(of).map((text) => text.slice(0, MAX_ANSWER_CHARACTERS));
  return (all ? told : told.slice(-1)).map((text, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: answers have no other name, and stay in order
    <span key={index} className="one-line" title={text}>
      {text}
    </span>
  ));
}
