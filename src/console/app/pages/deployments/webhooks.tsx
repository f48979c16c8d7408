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
import {
  deliveriesOf,
  type FoldedAnswer,
  latestAnswerOf,
  webhooks,
  webhooksOf,
} from "../../api/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { CopyChip } from "../../ui/copy-button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Deliveries, MAX_DELIVERIES_PER_STEP } from "../../ui/deliveries.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Menu, type MenuItem } from "../../ui/menu.tsx";
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
          <nav className="crumbs" aria-label="Way back">
            <Link
              to="/o/$organization/deployments/$deployment/webhooks"
              params={{ organization, deployment }}
            >
              Webhooks
            </Link>
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
  const actsOf = (webhook: WebhookJson) => {
    const { name = "", disabled = false } = webhook;
    return {
      edit: { label: "Edit", run: () => setAsked({ what: "edit", webhook }) },
      test: {
        label: "Send test",
        run: () => act({ run: () => webhooks.testWebhook(of(name)), said: `Testing ${name}` }),
      },
      rotate: { label: "Rotate secret", run: () => setAsked({ what: "rotate", name }) },
      toggle: {
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
      delete: {
        label: "Delete",
        isDangerous: true,
        run: () => setAsked({ what: "delete", name }),
      },
    };
  };
  const menuOf = (webhook: WebhookJson, items = Object.values(actsOf(webhook))) => (
    <Menu id={`webhook-${webhook.name}`} label={`Actions for ${webhook.name}`} items={items} />
  );
  return (
    <section aria-label={only === undefined ? "Webhooks" : `Webhook ${only}`}>
      {only === undefined && found.length > 0 && (
        <header className="section-header">
          <p className="secondary">URLs that are called when a task ends.</p>
          <Button kind="primary" onClick={() => setAsked({ what: "create" })}>
            Create webhook
          </Button>
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
            Create webhook
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
            {
              ...{ name: "URL", grows: true, narrow: "unnamed" },
              cell: ({ url }) => <code>{url}</code>,
            },
            { name: "Events", narrow: "unnamed", cell: eventsText },
            { name: "State", cell: (one) => <SendingState of={one} /> },
            { name: "Pending", isNumber: true, cell: ({ waiting = 0 }) => waiting },
          ]}
          actions={(one) => menuOf(one)}
        />
      )}
      {only !== undefined && found[0] !== undefined && (
        <One webhook={found[0]} acts={actsOf(found[0])} menuOf={menuOf} />
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
          title={`Rotate secret of ${asked.name}?`}
          action="Rotate"
          run={() => webhooks.rotateWebhookSecret(of(asked.name))}
          onDone={(made) => setAsked({ what: "secret", made })}
          onClose={close}
        >
          <p>
            For 24 hours, messages are signed with both secrets. Change the secret in your server
            within that time.
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
          <p>Its pending deliveries are not sent.</p>
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

type Acts = Readonly<Record<"edit" | "test" | "toggle" | "rotate" | "delete", MenuItem>>;

interface OneProps {
  readonly webhook: WebhookJson;
  readonly acts: Acts;
  menuOf(webhook: WebhookJson, items: MenuItem[]): ReactNode;
}

/** One webhook: how it stands, why, and when it is tried next; what can be done with it; and what it is. */
function One({ webhook, acts, menuOf }: OneProps) {
  const { createdAt, createdBy, failures = 0, rotatedUntil, waiting = 0, name = "" } = webhook;
  const organization = useOrganization();
  const deployment = useDeploymentName();
  const asked = { webhook: name, pageSize: MAX_DELIVERIES_PER_STEP };
  const { data } = useQuery(deliveriesOf(organization, deployment, asked));
  const { deliveries = [] } = data ?? {};
  const last = latestAnswerOf(deliveries);
  const [next] = deliveries.flatMap(({ nextAttemptAt }) => nextAttemptAt ?? []).sort();
  const facts: Readonly<Record<string, ReactNode>> = {
    URL: <CopyChip text={webhook.url ?? ""} what="the URL" />,
    ...(failures === 0 && {
      "Last response": last === undefined ? "none yet" : <LastResponse of={last} />,
    }),
    Events: eventsText(webhook),
    "Pending deliveries": waiting,
    "Consecutive failures": failures,
    Created: (
      <>
        {createdAt !== undefined && <Time at={createdAt} />} by {createdBy}
      </>
    ),
    ...(rotatedUntil !== undefined && {
      "Old secret": (
        <>
          signs as well, ends <Time at={rotatedUntil} />
        </>
      ),
    }),
  };
  return (
    <div className="card">
      <header className="section-header">
        <h2>{name}</h2>
        <div className="page-actions">
          {[acts.test, acts.edit, acts.toggle].map(({ label, run }) => (
            <Button key={label} onClick={run}>
              {label}
            </Button>
          ))}
          {menuOf(webhook, [acts.rotate, acts.delete])}
        </div>
      </header>
      <p className="sending">
        <SendingState of={webhook} />
        {failures > 0 && last !== undefined && <LastResponse of={last} />}
        {failures > 0 && webhook.pausedUntil === undefined && next !== undefined && (
          <span className="secondary">
            retries <Time at={next} />
          </span>
        )}
      </p>
      <Facts entries={facts} inColumns />
    </div>
  );
}

function LastResponse({ of: { text, lastAt } }: { readonly of: FoldedAnswer }) {
  return (
    <span>
      {text}
      {lastAt !== undefined && (
        <>
          , <Time at={lastAt} />
        </>
      )}
    </span>
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
      {...(only === undefined && { toWhat: "Webhook" })}
      messageOf={({ taskId, endpoint, event }) => (
        <>
          {taskId ? `${endpoint} ${endOf(event)}` : "a test"}
          {taskId && (
            <span className="secondary">
              <TaskLink name={{ organization, deployment, taskId }} />
            </span>
          )}
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
