/** How webhooks and receivers of alerts stand, what a delivery has come to, and a new secret. */
import type { WebhookDeliveryJson, WebhookJson } from "../../../../gen/tessera/v1/webhook_pb.js";
import { deliveryStateOf } from "../api/webhooks.ts";
import { Command } from "./command.tsx";
import { Dialog } from "./dialog.tsx";
import { Notice } from "./notice.tsx";
import { Status } from "./status.tsx";
import { Time } from "./time.tsx";

interface SendingStateProps {
  readonly of: Pick<WebhookJson, "disabled" | "disabledReason" | "pausedUntil" | "failures">;
}

export function SendingState({ of: one }: SendingStateProps) {
  const { disabled, disabledReason, pausedUntil, failures = 0 } = one;
  if (disabled) {
    return (
      <>
        <Status tone="idle">disabled</Status> <span className="secondary">{disabledReason}</span>
      </>
    );
  }
  if (failures === 0) {
    return <Status tone="good">ok</Status>;
  }
  return pausedUntil === undefined ? (
    <Status tone="warning">failing</Status>
  ) : (
    <>
      <Status tone="bad">paused</Status>{" "}
      <span className="secondary">
        tried again <Time at={pausedUntil} />
      </span>
    </>
  );
}

/** What is due sooner is as good as under way. */
const SOON_MS = 5_000;

const TONES: Readonly<Record<string, "good" | "bad">> = { delivered: "good", failed: "bad" };

export function DeliveryState({ of }: { readonly of: WebhookDeliveryJson }) {
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

interface NewSecretProps {
  /** What signs with it. */
  readonly name: string | undefined;
  readonly secret: string | undefined;
  onClose(): void;
}

/** The beginning of what a receiver answered. */
export const Answer = ({ text }: { readonly text: string }) => (
  <span className="one-line" title={text}>
    {text}
  </span>
);

/** Shows the secret of signatures once. */
export function NewSecret({ name, secret = "", onClose }: NewSecretProps) {
  return (
    <Dialog title={`The secret of ${name}`} onClose={onClose}>
      <Command text={secret} />
      <Notice kind="warning">Copy it now: it is not shown again.</Notice>
    </Dialog>
  );
}
