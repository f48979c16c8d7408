/** The state of webhooks and of receivers of alerts, why their deliveries fail, and a new secret. */
import type { WebhookJson } from "../../../../gen/tessera/v1/webhook_pb.js";
import type { FoldedAnswer } from "../api/deliveries.ts";
import { Command } from "./command.tsx";
import { counted } from "./counted.ts";
import { Dialog } from "./dialog.tsx";
import { Notice } from "./notice.tsx";
import { Status } from "./status.tsx";
import { DueTime, Time } from "./time.tsx";
import "./sending.css";

interface SendingStateProps {
  readonly of: Pick<WebhookJson, "disabled" | "disabledReason" | "pausedUntil" | "failures">;
  /** The page shows the next attempt elsewhere. Default: it is shown here. */
  readonly isShort?: boolean;
}

/** A person disables it, or an answer 410 does; what fails is tried again by itself. */
export function SendingState({ of: one, isShort = false }: SendingStateProps) {
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
  return (
    <>
      <Status tone="bad">failing</Status>
      {pausedUntil !== undefined && !isShort && (
        <span className="secondary">
          next attempt <DueTime at={pausedUntil} />
        </span>
      )}
    </>
  );
}

/** Characters of an answer in a row. */
const MAX_ANSWER_CHARACTERS = 200;

/** Shows why deliveries fail, below their address, or how one was answered. Renders nothing without a text. */
export function Cause({ text }: { readonly text: string | undefined }) {
  return (
    text !== undefined && (
      <span className="reason cause" title={text}>
        {text.slice(0, MAX_ANSWER_CHARACTERS)}
      </span>
    )
  );
}

interface WhyFailingProps {
  readonly of: Pick<WebhookJson, "failures">;
  /** The answer that came last. */
  readonly last: FoldedAnswer | undefined;
  /** When the next attempt is made; undefined where nothing waits for one. */
  readonly next: string | undefined;
}

/** Why deliveries fail, how many did in a row, and when the next one is tried. */
export function WhyFailing({ of: { failures = 0 }, last, next }: WhyFailingProps) {
  return (
    <section className="notice error why-failing" aria-label="Why it fails">
      <strong>{last?.text || "Attempts fail."}</strong>
      <p>
        {counted(failures, "failure")} in a row
        {last?.lastAt !== undefined && (
          <>
            , last <Time at={last.lastAt} />
          </>
        )}
        {next !== undefined && (
          <>
            ; next attempt <DueTime at={next} />
          </>
        )}
      </p>
    </section>
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
