/** Who hears of alerts, and what they answered. */
import { useQueryClient, useSuspenseInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import type {
  AlertReceiverJson,
  AlertReceiverWithSecretJson,
} from "../../../../../gen/tessera/v1/alert_pb.js";
import { alerts, alertsOf, receiversOf, toldOf } from "../../api/alerts.ts";
import { causeOf, ruleOf } from "../../api/deliveries.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Deliveries } from "../../ui/deliveries.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Cause, NewSecret, SendingState } from "../../ui/sending.tsx";
import { useActing } from "../../ui/use-acting.ts";
import { useSeenVersion } from "../../ui/use-seen-version.ts";
import { TRANSITIONS } from "./about.tsx";

const KINDS = {
  ALERT_RECEIVER_KIND_WEBHOOK: "Webhook",
  ALERT_RECEIVER_KIND_MAIL: "Mail",
  ALERT_RECEIVER_KIND_SLACK: "Slack",
} as const;

type Kind = keyof typeof KINDS;

type Asked =
  | { readonly what: "form"; readonly receiver: AlertReceiverJson | undefined }
  | { readonly what: "secret"; readonly made: AlertReceiverWithSecretJson }
  | { readonly what: "delete" | "rotate"; readonly name: string };

export function Receivers() {
  const organization = useOrganization();
  const { readAgain, act } = useActing(["alerts", organization]);
  const { data: receivers } = useSuspenseQuery(receiversOf(organization));
  const { data: deliveries } = useSuspenseInfiniteQuery(toldOf(organization));
  const [asked, setAsked] = useState<Asked>();
  const close = () => {
    setAsked(undefined);
    void readAgain();
  };
  const show = (made: AlertReceiverWithSecretJson | undefined) =>
    made?.secret ? setAsked({ what: "secret", made }) : close();
  const menuOf = (receiver: AlertReceiverJson) => {
    const { name = "", kind, disabled = false } = receiver;
    return [
      { label: "Edit", run: () => setAsked({ what: "form", receiver }) },
      {
        label: "Send test",
        run: () =>
          act({
            run: () => alerts.testAlertReceiver({ organization, name }),
            said: `Testing ${name}`,
          }),
      },
      ...(kind === "ALERT_RECEIVER_KIND_WEBHOOK"
        ? [{ label: "Rotate secret", run: () => setAsked({ what: "rotate", name }) }]
        : []),
      {
        label: disabled ? "Enable" : "Disable",
        run: () =>
          act({
            run: () =>
              alerts.updateAlertReceiver({
                ...{ organization, updateMask: "disabled" },
                receiver: { name, disabled: !disabled },
              }),
            said: `${name} is ${disabled ? "enabled" : "disabled"}`,
          }),
      },
      { label: "Delete", isDangerous: true, run: () => setAsked({ what: "delete", name }) },
    ];
  };
  return (
    <section aria-labelledby="receivers">
      <header className="section-header">
        <h2 id="receivers">Receivers</h2>
        <Button onClick={() => setAsked({ what: "form", receiver: undefined })}>
          Create receiver
        </Button>
      </header>
      {receivers.length === 0 ? (
        <div className="card alerts-none">
          <p>No receivers yet. A receiver is a webhook, an e-mail address, or Slack.</p>
          <Command text="npx tessera-platform alert receiver create app webhook https://example.com/alerts" />
        </div>
      ) : (
        <DataTable
          label="Receivers, by name"
          items={receivers}
          keyOf={({ name = "" }) => name}
          columns={[
            { name: "Name", cell: ({ name }) => name },
            {
              ...{ name: "Address", grows: true, narrow: "unnamed" },
              cell: (one) => (
                <>
                  <code>{one.address}</code>
                  <span className="secondary">{KINDS[one.kind as Kind]}</span>
                  <Cause text={causeOf(one, deliveries)?.text} />
                </>
              ),
            },
            { name: "State", cell: (one) => <SendingState of={one} /> },
          ]}
          actions={(one) => (
            <Menu
              id={`receiver-${one.name}`}
              label={`Actions for ${one.name}`}
              items={menuOf(one)}
            />
          )}
        />
      )}
      {asked?.what === "form" && (
        <ReceiverForm receiver={asked.receiver} onDone={show} onClose={close} />
      )}
      {asked?.what === "secret" && (
        <NewSecret name={asked.made.receiver?.name} secret={asked.made.secret} onClose={close} />
      )}
      {asked?.what === "rotate" && (
        <Confirm
          title={`Rotate secret of ${asked.name}?`}
          action="Rotate"
          run={() => alerts.rotateAlertReceiverSecret({ organization, name: asked.name })}
          onDone={show}
          onClose={close}
        >
          <p>For 24 hours, messages are signed with both secrets.</p>
        </Confirm>
      )}
      {asked?.what === "delete" && (
        <Confirm
          title={`Delete ${asked.name}?`}
          action="Delete"
          run={() => alerts.deleteAlertReceiver({ organization, name: asked.name })}
          onDone={close}
          onClose={close}
        >
          <p>Its waiting deliveries are not sent.</p>
        </Confirm>
      )}
    </section>
  );
}

interface ReceiverFormProps {
  /** Undefined: one is created. */
  readonly receiver: AlertReceiverJson | undefined;
  /** With its secret, which is shown once, where it is new. */
  onDone(made: AlertReceiverWithSecretJson | undefined): void;
  onClose(): void;
}

function ReceiverForm({ receiver, onDone, onClose }: ReceiverFormProps) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const [kind, setKind] = useState((receiver?.kind ?? "ALERT_RECEIVER_KIND_WEBHOOK") as Kind);
  const { name = "", address: known } = receiver ?? {};
  const isNew = receiver === undefined;
  const isMail = kind === "ALERT_RECEIVER_KIND_MAIL";
  // Of the URL of Slack, which is a secret, the page knows the beginning alone.
  const isHidden = !isNew && kind === "ALERT_RECEIVER_KIND_SLACK";
  const sendSeen = useSeenVersion<AlertReceiverJson>({
    thing: receiver,
    read: async () => {
      const asked = { ...receiversOf(organization), staleTime: 0 };
      return (await queryClient.fetchQuery(asked)).find((one) => one.name === name);
    },
    wordsOf: (now) => `${now.address}, ${now.disabled ? "disabled" : "enabled"}`,
  });
  const send = async (values: FormData): Promise<AlertReceiverWithSecretJson | undefined> => {
    const address = textOf(values, "receiver.address");
    if (isNew) {
      const made = { name: textOf(values, "receiver.name"), kind, address };
      return alerts.createAlertReceiver({ organization, receiver: made });
    }
    await sendSeen((version) =>
      alerts.updateAlertReceiver({
        ...{ organization, updateMask: "address" },
        receiver: { name, address, version },
      }),
    );
    return undefined;
  };
  return (
    <Dialog title={isNew ? "Create receiver" : `Edit ${name}`} onClose={onClose}>
      <FieldsForm
        fields={[
          ...(isNew
            ? [
                {
                  ...{ name: "receiver.name", label: "Name", autoComplete: "off", maxLength: 63 },
                } as const,
              ]
            : []),
          {
            ...{ name: "receiver.address", label: isMail ? "E-mail address" : "Address" },
            ...{ autoComplete: "off", maxLength: 2_048 },
            ...(known !== undefined && !isHidden && { defaultValue: known }),
            hint: isMail
              ? "Admins may enter any address, others only their own."
              : isHidden
                ? "Enter the whole new URL: the old one is stored encrypted and not shown."
                : "A URL that is reached from the internet, or that the operator allows.",
          },
        ]}
        submit={isNew ? "Create" : "Save"}
        needsChange={!isNew}
        send={send}
        onDone={onDone}
        onClose={onClose}
      >
        {isNew && (
          <Field label="Kind">
            {(control) => (
              <select
                {...control}
                value={kind}
                onChange={({ target }) => setKind(target.value as Kind)}
              >
                {(Object.keys(KINDS) as Kind[]).map((one) => (
                  <option key={one} value={one}>
                    {KINDS[one]}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        {kind === "ALERT_RECEIVER_KIND_WEBHOOK" && !isNew && (
          <p className="hint">
            The secret of its signatures stays: rotate it where the new server has another.
          </p>
        )}
      </FieldsForm>
    </Dialog>
  );
}

/** What receivers were told, and how they answered. */
export function Told() {
  const organization = useOrganization();
  const { act } = useActing(["alerts", organization]);
  const list = useSuspenseInfiniteQuery(toldOf(organization));
  const { data: receivers } = useSuspenseQuery(receiversOf(organization));
  const { data: known } = useSuspenseQuery(alertsOf(organization, "fired"));
  const { data: firing } = useSuspenseQuery(alertsOf(organization, "firing"));
  const all = [...firing, ...known];
  return (
    <Deliveries
      targets={receivers}
      deliveries={list.data}
      list={list}
      messageOf={(one) => {
        const event = TRANSITIONS[one.alert ?? ""];
        return event === undefined ? (
          "a test"
        ) : (
          <>
            {ruleOf(one, all)}
            <span className="secondary">{event}</span>
          </>
        );
      }}
      toWhat="Receiver"
      sendAgain={(deliveryId) =>
        act({
          run: () => alerts.redeliverAlert({ organization, deliveryId }),
          said: "Sending it again",
        })
      }
      read={(deliveryId, signal) =>
        alerts.getAlertDelivery({ organization, deliveryId }, { signal })
      }
    />
  );
}
