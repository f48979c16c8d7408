/** The webhooks of a deployment, or one, and what they were told with what they answered. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { useState } from "react";
import type {
  WebhookDeliveryJson,
  WebhookEventJson,
  WebhookJson,
  WebhookWithSecretJson,
} from "../../../../../gen/tessera/v1/webhook_pb.js";
import { useOrganization } from "../../api/session.ts";
import { endOf, heardBy } from "../../api/webhook-words.ts";
import {
  answersOf,
  deliveriesOf,
  MAX_DELIVERIES_PER_STEP,
  webhooks,
  webhooksOf,
} from "../../api/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Field } from "../../ui/field.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Answer, DeliveryState, NewSecret, SendingState } from "../../ui/sending.tsx";
import { Time } from "../../ui/time.tsx";
import { TaskLink } from "../tasks/task-link.tsx";
import { DeploymentFrame, useDeploymentName } from "./frame.tsx";
import { useAct } from "./use-act.ts";
import "./settings.css";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/webhooks/$webhook");

/** The choices of what a webhook is sent. */
const EVENTS_OF: Readonly<Record<string, WebhookEventJson[]>> = {
  "Every end of a task": [],
  Failures: ["WEBHOOK_EVENT_TASK_FAILURE"],
  Successes: ["WEBHOOK_EVENT_TASK_SUCCESS"],
};

type Asked =
  | { readonly what: "create" }
  | { readonly what: "secret"; readonly made: WebhookWithSecretJson }
  | { readonly what: "rotate" | "delete"; readonly name: string };

export function Webhooks() {
  return (
    <DeploymentFrame title="Webhooks">
      {() => (
        <>
          <Registered />
          <Deliveries />
        </>
      )}
    </DeploymentFrame>
  );
}

/** One webhook, at an address of its own. */
export function Webhook() {
  const { webhook } = route.useParams();
  const organization = useOrganization();
  const deployment = useDeploymentName();
  return (
    <DeploymentFrame title="Webhooks">
      {() => (
        <>
          <p>
            <Link
              to="/o/$organization/deployments/$deployment/webhooks"
              params={{ organization, deployment }}
            >
              All webhooks of {deployment}
            </Link>
          </p>
          <Registered only={webhook} />
          <Deliveries only={webhook} />
        </>
      )}
    </DeploymentFrame>
  );
}

interface OfOne {
  /** The one webhook that is shown, by its name. */
  readonly only?: string;
}

/** Acts on a webhook of the deployment, and has them read again with their deliveries. */
const useWebhookAct = () => useAct("webhooks", "webhook-deliveries");

function Registered({ only }: OfOne) {
  const { organization, deployment, readAgain, act } = useWebhookAct();
  const { data: all = [], isPending } = useQuery(webhooksOf(organization, deployment));
  const found = only === undefined ? all : all.filter(({ name }) => name === only);
  const [asked, setAsked] = useState<Asked>();
  const close = () => {
    setAsked(undefined);
    void readAgain();
  };
  const of = (name: string) => ({ organization, deployment, name });
  return (
    <section aria-label={only === undefined ? "Webhooks" : `Webhook ${only}`}>
      {only !== undefined && <h2>Webhook {only}</h2>}
      {only === undefined && found.length > 0 && (
        <header className="section-header">
          <p className="secondary">Addresses that are told how tasks end.</p>
          <Button onClick={() => setAsked({ what: "create" })}>Create a webhook</Button>
        </header>
      )}
      {only !== undefined && !isPending && found.length === 0 && (
        <p className="secondary">There is no webhook {only}, or it was deleted.</p>
      )}
      {only === undefined && !isPending && found.length === 0 && (
        <Empty inPage title="No webhooks yet">
          <p>A webhook is sent a signed message when a task ends, so that nobody has to ask.</p>
          <Command text={`npx tessera webhook create ${deployment} app https://example.com/told`} />
          <Button kind="primary" onClick={() => setAsked({ what: "create" })}>
            Create a webhook
          </Button>
          <a href="/docs/webhooks.html">How webhooks work</a>
        </Empty>
      )}
      {found.length > 0 && (
        <DataTable
          label="Webhooks, by name"
          items={found}
          keyOf={({ name = "" }) => name}
          columns={[
            { name: "Name", cell: ({ name }) => (only === undefined ? <Own name={name} /> : name) },
            { name: "Address", cell: (one) => <Address of={one} /> },
            { name: "State", cell: (one) => <SendingState of={one} /> },
            { name: "Waiting", cell: ({ waiting = 0 }) => waiting },
          ]}
          actions={({ name = "", disabled = false }) => (
            <Menu
              id={`webhook-${name}`}
              label={`Actions for ${name}`}
              items={[
                {
                  label: "Send a test",
                  run: () =>
                    act({ run: () => webhooks.testWebhook(of(name)), said: `Testing ${name}` }),
                },
                { label: "Rotate the secret", run: () => setAsked({ what: "rotate", name }) },
                {
                  label: disabled ? "Enable" : "Disable",
                  run: () =>
                    act({
                      run: () =>
                        webhooks.updateWebhook({
                          ...{ organization, deployment, updateMask: "disabled" },
                          webhook: { name, disabled: !disabled },
                        }),
                      said: `${name} is ${disabled ? "enabled" : "disabled"}`,
                    }),
                },
                {
                  label: "Delete",
                  isDangerous: true,
                  run: () => setAsked({ what: "delete", name }),
                },
              ]}
            />
          )}
        />
      )}
      {only !== undefined && found[0] !== undefined && <About webhook={found[0]} />}
      {asked?.what === "create" && (
        <Dialog title="Create a webhook" onClose={close}>
          <FieldsForm
            fields={[
              { name: "webhook.name", label: "Name", autoComplete: "off", maxLength: 63 },
              {
                ...{ name: "webhook.url", label: "Address", autoComplete: "off", maxLength: 2_048 },
                hint: "A URL that is reached from the internet, or that the operator allows.",
              },
              {
                ...{ name: "webhook.endpoint", label: "Endpoint", autoComplete: "off" },
                ...{ optional: true, hint: "Optional: told only of tasks of this endpoint." },
              },
            ]}
            submit="Create"
            send={(values) =>
              webhooks.createWebhook({
                ...{ organization, deployment },
                webhook: {
                  name: textOf(values, "webhook.name"),
                  url: textOf(values, "webhook.url"),
                  endpoint: textOf(values, "webhook.endpoint"),
                  events: EVENTS_OF[textOf(values, "told")] ?? [],
                },
              })
            }
            onDone={(made) => setAsked({ what: "secret", made })}
          >
            <Field label="Told of">
              {(control) => (
                <select {...control} name="told">
                  {Object.keys(EVENTS_OF).map((told) => (
                    <option key={told}>{told}</option>
                  ))}
                </select>
              )}
            </Field>
          </FieldsForm>
        </Dialog>
      )}
      {asked?.what === "secret" && (
        <NewSecret name={asked.made.webhook?.name} secret={asked.made.secret} onClose={close} />
      )}
      {asked?.what === "rotate" && (
        <Confirm
          title={`Rotate the secret of ${asked.name}?`}
          action="Rotate"
          run={() => webhooks.rotateWebhookSecret(of(asked.name))}
          onDone={(made) => setAsked({ what: "secret", made })}
          onClose={close}
        >
          <p>
            For 24 hours, messages have a signature of each: change it in your server meanwhile.
          </p>
        </Confirm>
      )}
      {asked?.what === "delete" && (
        <Confirm
          title={`Delete ${asked.name}?`}
          action="Delete"
          run={() => webhooks.deleteWebhook(of(asked.name))}
          onDone={close}
          onClose={close}
        >
          <p>What waits for it is not sent.</p>
        </Confirm>
      )}
    </section>
  );
}

/** The way to the page of a webhook. */
function Own({ name = "" }: { readonly name: string | undefined }) {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  return (
    <Link
      to="/o/$organization/deployments/$deployment/webhooks/$webhook"
      params={{ organization, deployment, webhook: name }}
    >
      {name}
    </Link>
  );
}

/** Who made it, and how it is signed. */
function About({ webhook }: { readonly webhook: WebhookJson }) {
  const { createdAt, createdBy, failures = 0, rotatedUntil } = webhook;
  return (
    <dl className="facts">
      <div>
        <dt>Made</dt>
        <dd>
          {createdAt !== undefined && <Time at={createdAt} />} by {createdBy}
        </dd>
      </div>
      {failures > 0 && (
        <div>
          <dt>Failed in a row</dt>
          <dd>{failures}</dd>
        </div>
      )}
      {rotatedUntil !== undefined && (
        <div>
          <dt>Signed by the secret before, too</dt>
          <dd>
            ends <Time at={rotatedUntil} />
          </dd>
        </div>
      )}
    </dl>
  );
}

function Address({ of: webhook }: { readonly of: WebhookJson }) {
  return (
    <>
      <code>{webhook.url}</code>
      <span className="secondary">{heardBy(webhook)}</span>
    </>
  );
}

function Deliveries({ only }: OfOne) {
  const { organization, deployment, act } = useWebhookAct();
  const [pageSize, setPageSize] = useState(MAX_DELIVERIES_PER_STEP);
  const asked = { webhook: only, pageSize };
  const { data } = useQuery(deliveriesOf(organization, deployment, asked));
  const { deliveries: found = [], hasMore = false } = data ?? {};
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
            cell: ({ taskId, endpoint, event, webhook }) => (
              <>
                {taskId ? `${endpoint} ${endOf(event)}` : "a test"}
                <span className="secondary">
                  {taskId && <TaskLink name={{ organization, deployment, taskId }} />}
                  {only === undefined && ` to ${webhook || "a deleted webhook"}`}
                </span>
              </>
            ),
          },
          { name: "State", cell: (one) => <DeliveryState of={one} /> },
          {
            name: only === undefined ? "Answer" : "Answers",
            cell: (one) => <Answers of={one} all={only !== undefined} />,
          },
          {
            name: "Created",
            cell: ({ createdAt }) => createdAt !== undefined && <Time at={createdAt} />,
          },
        ]}
        actions={({ id = "", webhook }) =>
          webhook && (
            <Button
              kind="quiet"
              aria-label={`Send again: ${id}`}
              onClick={() =>
                act({
                  run: () =>
                    webhooks.redeliverWebhook({ organization, deployment, deliveryId: id }),
                  said: "Sending it again",
                })
              }
            >
              Send again
            </Button>
          )
        }
      />
      {hasMore && (
        <p>
          <Button onClick={() => setPageSize(pageSize + MAX_DELIVERIES_PER_STEP)}>Show more</Button>
        </p>
      )}
    </section>
  );
}

/** Characters of an answer in a row. */
const MAX_ANSWER_CHARACTERS = 200;

/** What its receiver answered: the last time, or each time, of which the oldest is first. */
function Answers({ of, all }: { readonly of: WebhookDeliveryJson; readonly all: boolean }) {
  const told = answersOf(of).map((text) => text.slice(0, MAX_ANSWER_CHARACTERS));
  return (all ? told : told.slice(-1)).map((text, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: answers have no other name, and stay in order
    <Answer key={index} text={text} />
  ));
}
