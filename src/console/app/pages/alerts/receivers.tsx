/** Who hears of alerts, and what they answered. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import type {
  AlertReceiverJson,
  AlertReceiverWithSecretJson,
} from "../../../../../gen/tessera/v1/alert_pb.js";
import { alerts, receiversOf, toldOf } from "../../api/alerts.ts";
import { useOrganization } from "../../api/session.ts";
import { answerOf } from "../../api/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Answer, DeliveryState, NewSecret, SendingState } from "../../ui/sending.tsx";
import { Time } from "../../ui/time.tsx";
import { useActing } from "../../ui/use-acting.ts";

const KINDS = {
  ALERT_RECEIVER_KIND_WEBHOOK: "Webhook",
  ALERT_RECEIVER_KIND_MAIL: "Mail",
  ALERT_RECEIVER_KIND_SLACK: "Slack",
} as const;

type Kind = keyof typeof KINDS;

type Asked =
  | { readonly what: "create" }
  | { readonly what: "secret"; readonly made: AlertReceiverWithSecretJson }
  | { readonly what: "delete" | "rotate"; readonly name: string };

export function Receivers() {
  const organization = useOrganization();
  const { readAgain, act } = useActing(["alerts", organization]);
  const { data: receivers } = useSuspenseQuery(receiversOf(organization));
  const [asked, setAsked] = useState<Asked>();
  const close = () => {
    setAsked(undefined);
    void readAgain();
  };
  const show = (made: AlertReceiverWithSecretJson) =>
    made.secret ? setAsked({ what: "secret", made }) : close();
  const menuOf = ({ name = "", kind, disabled = false }: AlertReceiverJson) => [
    {
      label: "Send a test",
      run: () =>
        act({
          run: () => alerts.testAlertReceiver({ organization, name }),
          said: `Testing ${name}`,
        }),
    },
    ...(kind === "ALERT_RECEIVER_KIND_WEBHOOK"
      ? [{ label: "Rotate the secret", run: () => setAsked({ what: "rotate", name }) }]
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
  return (
    <section aria-labelledby="receivers">
      <header className="section-header">
        <h2 id="receivers">Receivers</h2>
        <Button onClick={() => setAsked({ what: "create" })}>Create a receiver</Button>
      </header>
      {receivers.length === 0 ? (
        <div className="card alerts-none">
          <p>Nobody is told yet. A receiver is a webhook, an e-mail address, or Slack.</p>
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
              name: "Address",
              cell: ({ kind, address }) => (
                <>
                  <code>{address}</code>
                  <span className="secondary">{KINDS[kind as Kind]}</span>
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
      {asked?.what === "create" && <Create onMade={show} onClose={close} />}
      {asked?.what === "secret" && (
        <NewSecret name={asked.made.receiver?.name} secret={asked.made.secret} onClose={close} />
      )}
      {asked?.what === "rotate" && (
        <Confirm
          title={`Rotate the secret of ${asked.name}?`}
          action="Rotate"
          run={() => alerts.rotateAlertReceiverSecret({ organization, name: asked.name })}
          onDone={show}
          onClose={close}
        >
          <p>For 24 hours, messages have a signature of each.</p>
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
          <p>What waits for it is not sent.</p>
        </Confirm>
      )}
    </section>
  );
}

function Create({
  onMade,
  onClose,
}: {
  onMade(made: AlertReceiverWithSecretJson): void;
  onClose(): void;
}) {
  const organization = useOrganization();
  const [kind, setKind] = useState<Kind>("ALERT_RECEIVER_KIND_WEBHOOK");
  const isMail = kind === "ALERT_RECEIVER_KIND_MAIL";
  return (
    <Dialog title="Create a receiver" onClose={onClose}>
      <FieldsForm
        fields={[
          { name: "receiver.name", label: "Name", autoComplete: "off", maxLength: 63 },
          {
            ...{ name: "receiver.address", label: isMail ? "E-mail address" : "Address" },
            ...{ autoComplete: "off", maxLength: 2_048 },
            hint: isMail
              ? "An admin names any, others their own."
              : "A URL that is reached from the internet, or that the operator allows.",
          },
        ]}
        submit="Create"
        send={(values) =>
          alerts.createAlertReceiver({
            organization,
            receiver: {
              name: textOf(values, "receiver.name"),
              kind,
              address: textOf(values, "receiver.address"),
            },
          })
        }
        onDone={onMade}
        onClose={onClose}
      >
        <Field label="Told by">
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
      </FieldsForm>
    </Dialog>
  );
}

/** What receivers were told, and how they answered. */
export function Deliveries() {
  const organization = useOrganization();
  const { data: found } = useSuspenseQuery(toldOf(organization));
  if (found.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="deliveries">
      <h2 id="deliveries">Deliveries</h2>
      <DataTable
        label="Deliveries, newest first"
        items={found}
        keyOf={({ id = "" }) => id}
        columns={[
          {
            name: "Message",
            cell: ({ alert = "", webhook }) => (
              <>
                {EVENTS[alert] ?? "a test"}
                <span className="secondary">to {webhook || "a deleted receiver"}</span>
              </>
            ),
          },
          { name: "State", cell: (one) => <DeliveryState of={one} /> },
          { name: "Answer", cell: (one) => <Answer text={answerOf(one).slice(0, 200)} /> },
          {
            name: "Created",
            cell: ({ createdAt }) => createdAt !== undefined && <Time at={createdAt} />,
          },
        ]}
      />
    </section>
  );
}

const EVENTS: Readonly<Record<string, string>> = {
  ALERT_TRANSITION_FIRING: "firing",
  ALERT_TRANSITION_CLEARED: "cleared",
};
