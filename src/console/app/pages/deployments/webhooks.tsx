/** The webhooks of a deployment, a page for each of them, and their deliveries. */
import { useInfiniteQuery, useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type {
  WebhookJson,
  WebhookWithSecretJson,
} from "../../../../../gen/tessera/v1/webhook_pb.js";
import { causeOf, type FoldedAnswer, latestAnswerOf } from "../../api/deliveries.ts";
import { deploymentOf, tasksOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { endOf, eventsText } from "../../api/webhook-words.ts";
import { deliveriesOf, webhooks, webhooksOf } from "../../api/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { CopyChip } from "../../ui/copy-button.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Deliveries } from "../../ui/deliveries.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Page } from "../../ui/page.tsx";
import { Cause, NewSecret, SendingState, WhyFailing } from "../../ui/sending.tsx";
import { DueTime, Time } from "../../ui/time.tsx";
import { TaskLink } from "../tasks/task-link.tsx";
import { DeploymentFrame, useDeploymentName } from "./frame.tsx";
import { useAct } from "./use-act.ts";
import { WebhookForm } from "./webhook-form.tsx";

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

/** Acts on a webhook of the deployment, and has them read again with their deliveries. */
const useWebhookAct = () => useAct("webhooks", "webhook-deliveries");

/** What can be done with webhooks, and the dialog of what is being done. */
function useWebhookActs(endpoints: readonly string[], onDeleted?: () => void) {
  const { organization, deployment, readAgain, act } = useWebhookAct();
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
  const dialog = (
    <>
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
          onDone={() => {
            close();
            onDeleted?.();
          }}
          onClose={close}
        >
          <p>Its waiting deliveries are not sent.</p>
        </Confirm>
      )}
    </>
  );
  return { actsOf, dialog, create: () => setAsked({ what: "create" }) };
}

function Registered({ endpoints }: { readonly endpoints: readonly string[] }) {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  const { data: found = [], isPending } = useQuery(webhooksOf(organization, deployment));
  const { data: deliveries = [] } = useInfiniteQuery(deliveriesOf(organization, deployment));
  const { actsOf, dialog, create } = useWebhookActs(endpoints);
  return (
    <section aria-label="Webhooks">
      {found.length > 0 && (
        <header className="section-header">
          <p className="secondary">URLs that are called when a task ends.</p>
          <Button kind="primary" onClick={create}>
            Create webhook
          </Button>
        </header>
      )}
      {!isPending && found.length === 0 && (
        <Empty inPage title="No webhooks yet">
          <p>A webhook is sent a signed message when a task ends, so that nobody has to ask.</p>
          <Command
            text={`npx tessera-platform webhook create ${deployment} app https://example.com/told`}
          />
          <Button kind="primary" onClick={create}>
            Create webhook
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
            { name: "Name", cell: ({ name }) => <Own name={name} /> },
            {
              ...{ name: "URL", grows: true, narrow: "unnamed" },
              cell: (one) => (
                <>
                  <code>{one.url}</code>
                  <Cause text={causeOf(one, deliveries)?.text} />
                </>
              ),
            },
            { name: "Events", narrow: "unnamed", cell: eventsText },
            { name: "State", cell: (one) => <SendingState of={one} /> },
            { name: "Waiting", isNumber: true, cell: ({ waiting = 0 }) => waiting },
          ]}
          actions={(one) => (
            <Menu
              id={`webhook-${one.name}`}
              label={`Actions for ${one.name}`}
              items={Object.values(actsOf(one))}
            />
          )}
        />
      )}
      {dialog}
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

/** The page of one webhook: its state and the reason, its actions, and its facts. */
export function Webhook() {
  const { webhook: name } = route.useParams();
  const organization = useOrganization();
  const deployment = useDeploymentName();
  const navigate = useNavigate();
  const list = { to: "/o/$organization/deployments/$deployment/webhooks" } as const;
  const params = { organization, deployment };
  const { endpoints = [] } = useSuspenseQuery(deploymentOf(organization, deployment)).data;
  const { data: all } = useSuspenseQuery(webhooksOf(organization, deployment));
  const { actsOf, dialog } = useWebhookActs(
    tasksOf(endpoints),
    () => void navigate({ ...list, params }),
  );
  const webhook = all.find((one) => one.name === name);
  const acts = webhook && actsOf(webhook);
  return (
    <Page
      title={name}
      crumbs={
        <>
          <Link to="/o/$organization/deployments/$deployment" params={params}>
            {deployment}
          </Link>
          <Link {...list} params={params}>
            Webhooks
          </Link>
        </>
      }
      description={webhook && <SendingState of={webhook} isShort />}
      actions={
        acts && (
          <>
            {[acts.test, acts.edit, acts.toggle].map(({ label, run }) => (
              <Button key={label} onClick={run}>
                {label}
              </Button>
            ))}
            <Menu
              id="webhook-actions"
              label={`Actions for ${name}`}
              items={[acts.rotate, acts.delete]}
            />
          </>
        )
      }
    >
      {webhook === undefined ? (
        <p className="secondary">There is no webhook {name}, or it was deleted.</p>
      ) : (
        <About webhook={webhook} />
      )}
      <Told only={name} />
      {dialog}
    </Page>
  );
}

/** The answer that came last to any delivery of a webhook, and when the next one is sent. */
function useLast(webhook: string) {
  const { data: deliveries = [] } = useInfiniteQuery(
    deliveriesOf(useOrganization(), useDeploymentName(), webhook),
  );
  const [next] = deliveries.flatMap(({ nextAttemptAt }) => nextAttemptAt ?? []).sort();
  return { last: latestAnswerOf(deliveries), next };
}

function About({ webhook }: { readonly webhook: WebhookJson }) {
  const { createdAt, createdBy, failures = 0, rotatedUntil, waiting = 0, name = "" } = webhook;
  const { last, next } = useLast(name);
  const entries: Readonly<Record<string, ReactNode>> = {
    URL: <CopyChip text={webhook.url ?? ""} what="the URL" />,
    Events: eventsText(webhook),
    ...(failures === 0 && {
      "Last response": last === undefined ? "none yet" : <LastResponse of={last} />,
    }),
    "Waiting deliveries": waiting,
    Created: (
      <>
        {createdAt !== undefined && <Time at={createdAt} />} by {createdBy}
      </>
    ),
    ...(rotatedUntil !== undefined && {
      "Old secret": (
        <>
          signs as well, ends <DueTime at={rotatedUntil} />
        </>
      ),
    }),
  };
  return (
    <>
      {failures > 0 && !webhook.disabled && (
        <WhyFailing of={webhook} last={last} next={webhook.pausedUntil ?? next} />
      )}
      <section className="card" aria-label={`Webhook ${name}`}>
        <Facts entries={entries} inColumns />
      </section>
    </>
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

interface ToldProps {
  /** The one webhook whose deliveries are shown, by its name. */
  readonly only?: string;
}

function Told({ only }: ToldProps) {
  const { organization, deployment, act } = useWebhookAct();
  const list = useInfiniteQuery(deliveriesOf(organization, deployment, only));
  const { data: targets = [] } = useQuery(webhooksOf(organization, deployment));
  return (
    <Deliveries
      targets={targets}
      deliveries={list.data ?? []}
      list={list}
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
      read={(deliveryId, signal) =>
        webhooks.getWebhookDelivery({ organization, deployment, deliveryId }, { signal })
      }
    />
  );
}
