/** The webhooks of a deployment, or one, and what they were told with what they answered. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type {
  WebhookJson,
  WebhookWithSecretJson,
} from "../../../../../gen/tessera/v1/webhook_pb.js";
import { tasksOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { endOf, eventsText } from "../../api/webhook-words.ts";
import { deliveriesOf, webhooks, webhooksOf } from "../../api/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Deliveries, MAX_DELIVERIES_PER_STEP } from "../../ui/deliveries.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Menu } from "../../ui/menu.tsx";
import { NewSecret, SendingState } from "../../ui/sending.tsx";
import { Time } from "../../ui/time.tsx";
import { TaskLink } from "../tasks/task-link.tsx";
import { DeploymentFrame, useDeploymentName } from "./frame.tsx";
import { useAct } from "./use-act.ts";
import { WebhookForm } from "./webhook-form.tsx";
import "./settings.css";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/webhooks/$webhook");

type Asked =
  | { readonly what: "create" }
  | { readonly what: "edit"; readonly webhook: WebhookJson }
  | { readonly what: "secret"; readonly made: WebhookWithSecretJson }
  | { readonly what: "rotate" | "delete"; readonly name: string };

export function Webhooks() {
  return (
    <DeploymentFrame title="Webhooks">
      {({ endpoints = [] }) => (
        <>
          <Registered endpoints={tasksOf(endpoints)} />
          <Told />
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
      {({ endpoints = [] }) => (
        <>
          <nav className="crumbs" aria-label="Breadcrumb">
            <Link
              to="/o/$organization/deployments/$deployment/webhooks"
              params={{ organization, deployment }}
            >
              Webhooks
            </Link>
            <span>{webhook}</span>
          </nav>
          <Registered only={webhook} endpoints={tasksOf(endpoints)} />
          <Told only={webhook} />
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

function Registered({ only, endpoints }: OfOne & { readonly endpoints: readonly string[] }) {
  const { organization, deployment, readAgain, act } = useWebhookAct();
  const { data: all = [], isPending } = useQuery(webhooksOf(organization, deployment));
  const found = only === undefined ? all : all.filter(({ name }) => name === only);
  const [asked, setAsked] = useState<Asked>();
  const close = () => {
    setAsked(undefined);
    void readAgain();
  };
  const of = (name: string) => ({ organization, deployment, name });
  const menuOf = (webhook: WebhookJson) => {
    const { name = "", disabled = false } = webhook;
    return (
      <Menu
        id={`webhook-${name}`}
        label={`Actions for ${name}`}
        items={[
          {
            label: "Edit",
            run: () => setAsked({ what: "edit", webhook }),
          },
          {
            label: "Send a test",
            run: () => act({ run: () => webhooks.testWebhook(of(name)), said: `Testing ${name}` }),
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
    );
  };
  return (
    <section aria-label={only === undefined ? "Webhooks" : `Webhook ${only}`}>
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
          <Command
            text={`npx tessera-platform webhook create ${deployment} app https://example.com/told`}
          />
          <Button kind="primary" onClick={() => setAsked({ what: "create" })}>
            Create a webhook
          </Button>
          <a href="/docs/webhooks.html">How webhooks work</a>
        </Empty>
      )}
      {only === undefined && found.length > 0 && (
        <DataTable
          label="Webhooks, by name"
          items={found}
          keyOf={({ name = "" }) => name}
          columns={[
            { name: "Name", cell: ({ name }) => <Own name={name} /> },
            { name: "Address", cell: (one) => <Address of={one} /> },
            { name: "State", cell: (one) => <SendingState of={one} /> },
            { name: "Waiting", isNumber: true, cell: ({ waiting = 0 }) => waiting },
          ]}
          actions={menuOf}
        />
      )}
      {only !== undefined && found[0] !== undefined && (
        <div className="card">
          <header className="section-header">
            <h2>{only}</h2>
            {menuOf(found[0])}
          </header>
          <About webhook={found[0]} />
        </div>
      )}
      {(asked?.what === "create" || asked?.what === "edit") && (
        <WebhookForm
          webhook={asked.what === "edit" ? asked.webhook : undefined}
          endpoints={endpoints}
          onDone={(made) => (made === undefined ? close() : setAsked({ what: "secret", made }))}
          onClose={close}
        />
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

/** What is known of one. */
function About({ webhook }: { readonly webhook: WebhookJson }) {
  const { createdAt, createdBy, failures = 0, rotatedUntil, waiting = 0 } = webhook;
  const facts: Readonly<Record<string, ReactNode>> = {
    State: <SendingState of={webhook} />,
    Address: <code>{webhook.url}</code>,
    Events: eventsText(webhook),
    "Deliveries that wait": waiting,
    ...(failures > 0 && { "Failed in a row": failures }),
    ...(rotatedUntil !== undefined && {
      "Signed by the secret before, too": (
        <>
          ends <Time at={rotatedUntil} />
        </>
      ),
    }),
    Created: (
      <>
        {createdAt !== undefined && <Time at={createdAt} />} by {createdBy}
      </>
    ),
  };
  return <Facts entries={facts} />;
}

function Address({ of: webhook }: { readonly of: WebhookJson }) {
  return (
    <>
      <code>{webhook.url}</code>
      <span className="secondary">{eventsText(webhook)}</span>
    </>
  );
}

function Told({ only }: OfOne) {
  const { organization, deployment, act } = useWebhookAct();
  const [pageSize, setPageSize] = useState(MAX_DELIVERIES_PER_STEP);
  const asked = { webhook: only, pageSize };
  const { data } = useQuery(deliveriesOf(organization, deployment, asked));
  return (
    <Deliveries
      deliveries={data?.deliveries ?? []}
      hasMore={data?.hasMore ?? false}
      onMore={() => setPageSize(pageSize + MAX_DELIVERIES_PER_STEP)}
      allAnswers={only !== undefined}
      messageOf={({ taskId, endpoint, event, webhook }) => (
        <>
          {taskId ? `${endpoint} ${endOf(event)}` : "a test"}
          <span className="secondary">
            {taskId && <TaskLink name={{ organization, deployment, taskId }} />}
            {only === undefined && ` to ${webhook || "a deleted webhook"}`}
          </span>
        </>
      )}
      sendAgain={(deliveryId) =>
        act({
          run: () => webhooks.redeliverWebhook({ organization, deployment, deliveryId }),
          said: "Sending it again",
        })
      }
    />
  );
}
