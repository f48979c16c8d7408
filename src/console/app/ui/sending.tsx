/** How webhooks and receivers of alerts stand, and a new secret. */
import type { WebhookJson } from "../../../../gen/tessera/v1/webhook_pb.js";
import { Command } from "./command.tsx";
import { Dialog } from "./dialog.tsx";
import { Notice } from "./notice.tsx";
import { Status } from "./status.tsx";
import { Time } from "./time.tsx";
import "./sending.css";

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
    return <Status tone="good">OK</Status>;
  }
  return pausedUntil === undefined ? (
    <Status tone="bad">failing</Status>
  ) : (
    <>
      <Status tone="bad">paused</Status>{" "}
      <span className="secondary">
        retries <Time at={pausedUntil} />
      </span>
    </>
  );
}

interface NewSecretProps {
  /** What signs with it. */
  readonly name: string | undefined;
  readonly secret: string | undefined;
  onClose(): void;
}

/** Shows the secret of signatures once. */
export function NewSecret({ name, secret = "", onClose }: NewSecretProps) {
  return (
    <Dialog title={`The secret of ${name}`} onClose={onClose}>
      <Command text={secret} />
      <Notice kind="warning">Copy it now: it is not shown again.</Notice>
    </Dialog>
  );
}
