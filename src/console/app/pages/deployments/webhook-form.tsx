/** The dialog in which a webhook is written: created, or changed beside others who change it too. */
import { useQueryClient } from "@tanstack/react-query";
import type {
  WebhookEventJson,
  WebhookJson,
  WebhookWithSecretJson,
} from "../../../../../gen/tessera/v1/webhook_pb.js";
import { CallError } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { eventsText } from "../../api/webhook-words.ts";
import { webhooks, webhooksOf } from "../../api/webhooks.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { useSeenVersion } from "../../ui/use-seen-version.ts";
import { useDeploymentName } from "./frame.tsx";

/** The events that a webhook may send. */
const EVENTS = [
  ["WEBHOOK_EVENT_TASK_SUCCESS", "Success"],
  ["WEBHOOK_EVENT_TASK_FAILURE", "Failure"],
  ["WEBHOOK_EVENT_TASK_CANCELLED", "Cancelled"],
] as const satisfies readonly (readonly [WebhookEventJson, string])[];

interface WebhookFormProps {
  /** Undefined: one is created. */
  readonly webhook: WebhookJson | undefined;
  /** The task endpoints of the deployment. */
  readonly endpoints: readonly string[];
  /** With its secret, which is shown once, where it is new. */
  onDone(made: WebhookWithSecretJson | undefined): void;
  onClose(): void;
}

export function WebhookForm({ webhook, endpoints, onDone, onClose }: WebhookFormProps) {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  const queryClient = useQueryClient();
  const { name = "", url, endpoint = "", events = [] } = webhook ?? {};
  const sendSeen = useSeenVersion<WebhookJson>({
    thing: webhook,
    read: async () => {
      const asked = { ...webhooksOf(organization, deployment), staleTime: 0 };
      return (await queryClient.fetchQuery(asked)).find((one) => one.name === name);
    },
    wordsOf: (now) => `${now.url}, events: ${eventsText(now)}`,
  });
  const send = async (values: FormData): Promise<WebhookWithSecretJson | undefined> => {
    const settings: WebhookJson = {
      url: textOf(values, "webhook.url"),
      endpoint: textOf(values, "webhook.endpoint"),
      events: EVENTS.map(([event]) => event).filter((event) => values.has(event)),
      namedOnly: values.has("named_only"),
    };
    if (settings.events?.length === 0) {
      throw new CallError("Choose at least one event.");
    }
    if (webhook === undefined) {
      return webhooks.createWebhook({
        ...{ organization, deployment },
        webhook: { ...settings, name: textOf(values, "webhook.name") },
      });
    }
    await sendSeen((version) =>
      webhooks.updateWebhook({
        ...{ organization, deployment, webhook: { ...settings, name, version } },
        updateMask: Object.keys(settings).join(","),
      }),
    );
    return undefined;
  };
  return (
    <Dialog title={webhook === undefined ? "Create webhook" : `Edit ${name}`} onClose={onClose}>
      <FieldsForm
        fields={[
          ...(webhook === undefined
            ? [{ name: "webhook.name", label: "Name", autoComplete: "off", maxLength: 63 } as const]
            : []),
          {
            ...{ name: "webhook.url", label: "Address", autoComplete: "off", maxLength: 2_048 },
            ...(url !== undefined && { defaultValue: url }),
            hint: "A URL that is reached from the internet, or that the operator allows.",
          },
        ]}
        submit={webhook === undefined ? "Create" : "Save"}
        needsChange={webhook !== undefined}
        send={send}
        onDone={onDone}
        onClose={onClose}
      >
        <Field label="Endpoint">
          {(control) => (
            <select {...control} name="webhook.endpoint" defaultValue={endpoint}>
              <option value="">All endpoints</option>
              {[...new Set([...endpoints, endpoint])]
                .filter((one) => one !== "")
                .map((one) => (
                  <option key={one}>{one}</option>
                ))}
            </select>
          )}
        </Field>
        <fieldset className="choices">
          <legend>Events</legend>
          {EVENTS.map(([event, words]) => (
            <label key={event} className="choice">
              <input
                type="checkbox"
                name={event}
                defaultChecked={events.length === 0 || events.includes(event)}
              />
              <span>{words}</span>
            </label>
          ))}
          <label className="choice">
            <input type="checkbox" name="named_only" defaultChecked={webhook?.namedOnly} />
            <span>
              Only tasks whose submit names it
              <span className="hint">
                By <code>?webhook={name || "NAME"}</code> in the address.
              </span>
            </span>
          </label>
        </fieldset>
      </FieldsForm>
    </Dialog>
  );
}
