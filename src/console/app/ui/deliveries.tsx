/** What was sent to webhooks and to receivers of alerts, what they answered, and the way to send it again. */
import { useQuery } from "@tanstack/react-query";
import { type ComponentProps, Fragment, type ReactNode } from "react";
import type { WebhookDeliveryJson } from "../../../../gen/tessera/v1/webhook_pb.js";
import {
  answerOf,
  answersOf,
  deliveryStateOf,
  type FoldedAnswer,
  nextAttemptOf,
  type Target,
} from "../api/deliveries.ts";
import { messageOf as errorText } from "../api/errors.ts";
import { Button, ShowMore } from "./button.tsx";
import { CopyButton, CopyChip } from "./copy-button.tsx";
import { counted } from "./counted.ts";
import { Facts } from "./facts.tsx";
import { Loading } from "./loading.tsx";
import { Notice } from "./notice.tsx";
import { OpenableTable } from "./openable-table.tsx";
import { Cause } from "./sending.tsx";
import { Status, type Tone } from "./status.tsx";
import { DueTime, ExactTime, Time } from "./time.tsx";
import { secondText } from "./time-range.ts";

interface DeliveriesProps {
  /** The webhooks or receivers that they are sent to. */
  readonly targets: readonly Target[];
  /** Newest first; without any, nothing is shown. */
  readonly deliveries: readonly WebhookDeliveryJson[];
  /** The query of the deliveries. */
  readonly list: ComponentProps<typeof ShowMore>["of"];
  /** What one is about. */
  messageOf(delivery: WebhookDeliveryJson): ReactNode;
  /** What the targets are called, such as `Webhook`. Default: all deliveries are for one target. */
  readonly toWhat?: string;
  sendAgain(deliveryId: string): void;
  /** Reads one with the message that was sent. */
  read(deliveryId: string, signal: AbortSignal): Promise<WebhookDeliveryJson>;
}

export function Deliveries({
  targets,
  deliveries,
  list,
  messageOf,
  toWhat,
  sendAgain,
  read,
}: DeliveriesProps) {
  if (deliveries.length === 0) {
    return null;
  }
  const targetOf = new Map(targets.map((one) => [one.name, one]));
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries</h2>
      <OpenableTable
        label="Deliveries, newest first"
        items={deliveries}
        keyOf={({ id = "" }) => id}
        columns={[
          { name: "Message", cell: messageOf },
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
            cell: (one) => <DeliveryState of={one} target={targetOf.get(one.webhook)} />,
          },
          {
            ...{ name: "Last response", grows: true, narrow: "unnamed" },
            cell: (one) => <Cause text={answerOf(one) || undefined} />,
          },
          {
            ...{ name: "Created", narrow: "unnamed" },
            cell: ({ createdAt }) => createdAt !== undefined && <Time at={createdAt} />,
          },
        ]}
        detailsOf={(one) => <Details of={one} read={read} />}
        actions={({ id = "", webhook }) =>
          webhook && (
            <Button
              kind="quiet"
              className="of-row"
              aria-label={`Send again: ${id}`}
              onClick={() => sendAgain(id)}
            >
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
  /** What it is sent to; undefined where that was deleted. */
  readonly target: Target | undefined;
}

/** The state of a delivery, and how it goes on: when it is attempted next, or after how many attempts it ended. */
function DeliveryState({ of: one, target }: DeliveryStateProps) {
  const state = deliveryStateOf(one);
  return (
    <>
      <Status tone={DELIVERY_TONES[state] ?? "idle"}>{state}</Status>
      <span className="secondary">{courseOf(one, target)}</span>
    </>
  );
}

function courseOf(one: WebhookDeliveryJson, target: Target | undefined): ReactNode {
  const { attempts = 0 } = one;
  const state = deliveryStateOf(one);
  if (state === "failed") {
    return `gave up after ${counted(attempts, "attempt")}`;
  }
  if (state === "delivered") {
    return attempts > 1 && `after ${attempts} attempts`;
  }
  if (target?.disabled) {
    return "held while disabled";
  }
  const next = nextAttemptOf(one, target);
  return (
    <>
      attempt {attempts + 1} {next === undefined ? "now" : <DueTime at={next} />}
    </>
  );
}

interface DetailsProps extends Pick<DeliveriesProps, "read"> {
  readonly of: WebhookDeliveryJson;
}

/** What was sent, and each answer to it. */
function Details({ of: one, read }: DetailsProps) {
  const { id = "", createdAt } = one;
  const answers = answersOf(one);
  return (
    <>
      <Facts
        entries={{
          Delivery: <CopyChip text={id} what="the id of the delivery" />,
          ...(createdAt !== undefined && { Created: <ExactTime at={createdAt} /> }),
          Responses: answers.length === 0 ? "none yet" : <Answers of={answers} />,
        }}
      />
      <Sent id={id} isSent={answers.length > 0} read={read} />
    </>
  );
}

/** The answers, the oldest first, with how often each came in a row, and when last. */
function Answers({ of: answers }: { readonly of: readonly FoldedAnswer[] }) {
  return answers.map(({ text, count, lastAt = "" }, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: answers have no other name, and stay in order
    <Fragment key={index}>
      <div>{text}</div>
      <span className="secondary">
        {count > 1 && `${count} times, last `}
        {secondText(Date.parse(lastAt))}
      </span>
    </Fragment>
  ));
}

interface SentProps extends Pick<DeliveriesProps, "read"> {
  readonly id: string;
  readonly isSent: boolean;
}

/** The message as it was sent. */
function Sent({ id, isSent, read }: SentProps) {
  const { data, error } = useQuery({
    queryKey: ["delivery", id, isSent],
    queryFn: ({ signal }) => read(id, signal),
  });
  if (error) {
    return <Notice kind="error">{errorText(error)}</Notice>;
  }
  const { body = "" } = data ?? {};
  return data === undefined ? (
    <Loading />
  ) : body === "" ? (
    <p className="secondary">It was not sent yet.</p>
  ) : (
    <section className="copied-from" aria-label="Message">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <pre className="result-text" tabIndex={0}>
        {indented(body)}
      </pre>
      <CopyButton text={body} what="the message" />
    </section>
  );
}

/** A message to read: JSON with a line for each field, and anything else, such as a mail, as it is. */
function indented(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), undefined, 2);
  } catch {
    return body;
  }
}
