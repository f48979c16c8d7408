/** What is wrong now in an organization: alerts that fire, their rules, and what has fired. */
import { useQuery, useSuspenseQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import type { AlertJson, AlertRuleJson } from "../../../../../gen/tessera/v1/alert_pb.js";
import { alerts, alertsOf, receiversOf, rulesOf } from "../../api/alerts.ts";
import { capitalized } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { failingWebhooksOf } from "../../api/webhooks.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { counted } from "../../ui/counted.ts";
import { between, durationMs } from "../../ui/duration.ts";
import { Menu } from "../../ui/menu.tsx";
import { OpenableTable } from "../../ui/openable-table.tsx";
import { Page } from "../../ui/page.tsx";
import { Status } from "../../ui/status.tsx";
import { DueTime, Time } from "../../ui/time.tsx";
import { useActing } from "../../ui/use-acting.ts";
import { AboutAlert, AboutRule } from "./about.tsx";
import { Receivers, Told } from "./receivers.tsx";
import { RuleForm } from "./rule-form.tsx";
import { Subject } from "./subject.tsx";
import "./alerts.css";

export function Alerts() {
  return (
    <Page title="Alerts" description="What is wrong, and who is notified.">
      <Head />
      <Live state="firing" />
      <Live state="pending" />
      <Rules />
      <Receivers />
      <Told />
      <History />
    </Page>
  );
}

/** How it stands in a line: what fires, is pending or fails, when rules were looked at last, and who hears nothing. */
function Head() {
  const organization = useOrganization();
  const { data: firing } = useSuspenseQuery(alertsOf(organization, "firing"));
  const { data: pending } = useSuspenseQuery(alertsOf(organization, "pending"));
  const { data: rules } = useSuspenseQuery(rulesOf(organization));
  const { data: receivers } = useSuspenseQuery(receiversOf(organization));
  const unheard = receivers.flatMap(({ name, disabled, pausedUntil }) =>
    disabled || pausedUntil !== undefined ? [name] : [],
  );
  const looking = rules.filter(({ disabled }) => !disabled).length;
  const checkedAt = rules
    .flatMap(({ evaluatedAt }) => evaluatedAt ?? [])
    .sort()
    .at(-1);
  if (firing.length + rules.length === 0) {
    return null;
  }
  const isCalm = looking > 0 && pending.length === 0;
  return (
    <p className="page-head">
      <Status tone={firing.length > 0 ? "bad" : isCalm ? "good" : "idle"}>
        {looking === 0 && firing.length === 0
          ? "All rules are disabled"
          : `${firing.length} firing`}
      </Status>
      {pending.length > 0 && (
        <a href="#pending">
          <Status tone="warning">{`${pending.length} pending`}</Status>
        </a>
      )}
      <FailingWebhooks />
      <span className="secondary">
        {counted(rules.length, "rule")}
        {checkedAt !== undefined && (
          <>
            , last checked <Time at={checkedAt} />
          </>
        )}
      </span>
      {unheard.length > 0 && <Status tone="bad">{`Not reached: ${unheard.join(", ")}`}</Status>}
    </p>
  );
}

/** How many webhooks are failing, whether or not a rule looks for them, with the way to them. */
function FailingWebhooks() {
  const organization = useOrganization();
  const { data: failing = [] } = useQuery(failingWebhooksOf(organization));
  const [{ deployment = "" } = {}, ...others] = failing;
  const text = `${counted(failing.length, "webhook")} failing`;
  if (failing.length === 0) {
    return null;
  }
  return others.every((one) => one.deployment === deployment) ? (
    <Link
      to="/o/$organization/deployments/$deployment/webhooks"
      params={{ organization, deployment }}
    >
      <Status tone="warning">{text}</Status>
    </Link>
  ) : (
    <Link to="/o/$organization" params={{ organization }}>
      <Status tone="warning">{text}</Status>
    </Link>
  );
}

interface LiveProps {
  readonly state: "firing" | "pending";
}

/** The alerts that fire, or that are pending and fire unless what they are about ends before. */
function Live({ state }: LiveProps) {
  const organization = useOrganization();
  const { data: found } = useSuspenseQuery(alertsOf(organization, state));
  const { data: rules } = useSuspenseQuery(rulesOf(organization));
  const isPending = state === "pending";
  return (
    found.length > 0 && (
      <section aria-labelledby={state}>
        <h2 id={state}>{isPending ? "Pending" : "Firing"}</h2>
        <OpenableTable
          label={
            isPending ? "Alerts that are pending, newest first" : "Alerts that fire, newest first"
          }
          items={found}
          keyOf={({ id = "" }) => id}
          columns={[
            { name: "What", cell: (alert) => <Subject of={alert} /> },
            { name: "Found", grows: true, narrow: "unnamed", cell: Found },
            { name: "Rule", cell: ({ rule }) => rule },
            { name: "Began", cell: ({ since }) => since !== undefined && <Time at={since} /> },
            ...(isPending
              ? [{ name: "Fires", cell: (alert: AlertJson) => firesAt(alert, rules) }]
              : []),
          ]}
          detailsOf={(alert) => <AboutAlert of={alert} />}
        />
      </section>
    )
  );
}

/** When an alert fires that is pending: once it has been true for as long as its rule holds. */
function firesAt({ rule: name, since = "" }: AlertJson, rules: readonly AlertRuleJson[]) {
  const { hold = "0s" } = rules.find((one) => one.name === name) ?? {};
  return <DueTime at={new Date(Date.parse(since) + durationMs(hold)).toISOString()} />;
}

/** What was found, which may be long. The text of an alert continues a sentence; here it is one. */
const Found = ({ text = "" }: AlertJson) => (
  <span className="reason" title={text}>
    {capitalized(text)}
  </span>
);

type Asked =
  | { readonly what: "form"; readonly rule: AlertRuleJson | undefined }
  | { readonly what: "delete"; readonly name: string };

function Rules() {
  const organization = useOrganization();
  const { readAgain, act } = useActing(["alerts", organization]);
  const { data: rules } = useSuspenseQuery(rulesOf(organization));
  const { data: receivers } = useSuspenseQuery(receiversOf(organization));
  const [asked, setAsked] = useState<Asked>();
  const close = () => {
    setAsked(undefined);
    void readAgain();
  };
  const change = (name: string, what: Partial<AlertRuleJson>) =>
    alerts.updateAlertRule({
      organization,
      updateMask: Object.keys(what).join(","),
      rule: { name, ...what },
    });
  const menuOf = ({ name = "", disabled = false, silencedUntil }: AlertRuleJson) => [
    silencedUntil === undefined
      ? {
          label: "Silence for an hour",
          run: () =>
            act({
              run: () => alerts.silenceAlertRule({ organization, name }),
              said: `No notifications about ${name} for an hour`,
            }),
        }
      : {
          label: "End the silence",
          run: () =>
            act({
              run: () => alerts.silenceAlertRule({ organization, name, duration: "0s" }),
              said: `Notifications about ${name} are sent again`,
            }),
        },
    {
      label: disabled ? "Enable" : "Disable",
      run: () =>
        act({
          run: () => change(name, { disabled: !disabled }),
          said: `${name} is ${disabled ? "enabled" : "disabled"}`,
        }),
    },
    {
      label: "Delete",
      isDangerous: true,
      run: () => setAsked({ what: "delete", name }),
    },
  ];
  return (
    <section aria-labelledby="rules">
      <header className="section-header">
        <h2 id="rules">Rules</h2>
        <Button kind="primary" onClick={() => setAsked({ what: "form", rule: undefined })}>
          Create rule
        </Button>
      </header>
      {rules.length === 0 ? (
        <div className="card alerts-none">
          <p>
            A rule looks for one problem, such as tasks that wait or fail, and notifies receivers.{" "}
            <a href="/docs/alerts.html">How alerts work</a>
          </p>
          <Command text="npx tessera-platform alert create failing failures --threshold 5 --hold 5m" />
        </div>
      ) : (
        <OpenableTable
          label="Rules, by name"
          items={rules}
          keyOf={({ name = "" }) => name}
          columns={[
            { name: "Name", cell: ({ name }) => name },
            { name: "State", cell: (one) => <State of={one} /> },
            {
              ...{ name: "Fires when", grows: true, narrow: "unnamed" },
              cell: (one) => <Condition of={one} />,
            },
            {
              name: "Notifies",
              cell: ({ receivers: names = [] }) => names.join(", ") || "nobody",
            },
          ]}
          detailsOf={(one) => <AboutRule of={one} />}
          actions={(one) => (
            <Menu
              id={`rule-${one.name}`}
              label={`Actions for ${one.name}`}
              items={[
                { label: "Edit", run: () => setAsked({ what: "form", rule: one }) },
                ...menuOf(one),
              ]}
            />
          )}
        />
      )}
      {asked?.what === "form" && (
        <RuleForm
          rule={asked.rule}
          receivers={receivers.map(({ name = "" }) => name)}
          onDone={close}
          onClose={() => setAsked(undefined)}
        />
      )}
      {asked?.what === "delete" && (
        <Confirm
          title={`Delete ${asked.name}?`}
          action="Delete"
          run={() => alerts.deleteAlertRule({ organization, name: asked.name })}
          onDone={close}
          onClose={() => setAsked(undefined)}
        >
          <p>Its alerts that fire are cleared, and its receivers are notified.</p>
        </Confirm>
      )}
    </section>
  );
}

function Condition({ of: { condition, deployments = [] } }: { readonly of: AlertRuleJson }) {
  return (
    <>
      {condition}
      {deployments.length > 0 && <span className="secondary">of {deployments.join(", ")}</span>}
    </>
  );
}

function State({ of: one }: { readonly of: AlertRuleJson }) {
  const { disabled, firing = 0, pending = 0, silencedUntil, evaluatedAt } = one;
  return (
    <>
      {disabled ? (
        <Status tone="idle">disabled</Status>
      ) : firing > 0 ? (
        <Status tone="bad">{`firing (${firing})`}</Status>
      ) : pending > 0 ? (
        <Status tone="warning">{`pending (${pending})`}</Status>
      ) : (
        <Status tone={evaluatedAt === undefined ? "working" : "good"}>
          {evaluatedAt === undefined ? "new" : "OK"}
        </Status>
      )}
      {silencedUntil !== undefined && (
        <span className="secondary">
          silenced, ends <DueTime at={silencedUntil} />
        </span>
      )}
    </>
  );
}

function History() {
  const organization = useOrganization();
  const { data: all } = useSuspenseQuery(alertsOf(organization, "fired"));
  const cleared = all.filter(({ clearedAt }) => clearedAt !== undefined);
  if (cleared.length === 0) {
    return null;
  }
  return (
    <section aria-labelledby="history">
      <h2 id="history">History</h2>
      <OpenableTable
        label="Alerts that have cleared, newest first"
        items={cleared}
        keyOf={({ id = "" }) => id}
        columns={[
          { name: "What", cell: (alert) => <Subject of={alert} /> },
          { name: "Found", grows: true, narrow: "unnamed", cell: Found },
          { name: "Rule", cell: ({ rule }) => rule },
          { name: "Fired", cell: ({ firedAt }) => firedAt !== undefined && <Time at={firedAt} /> },
          { name: "Lasted", cell: lasted },
        ]}
        detailsOf={(alert) => <AboutAlert of={alert} />}
      />
    </section>
  );
}

const lasted = ({ firedAt, clearedAt }: AlertJson): string =>
  firedAt === undefined ? "" : between(firedAt, clearedAt, Date.now());
