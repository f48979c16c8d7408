/** What is wrong now in an organization: alerts that fire, their rules, and what has fired. */
import { useSuspenseQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { AlertJson, AlertRuleJson } from "../../../../../gen/tessera/v1/alert_pb.js";
import { alerts, alertsOf, receiversOf, rulesOf } from "../../api/alerts.ts";
import { capitalized } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { counted } from "../../ui/counted.ts";
import { between } from "../../ui/duration.ts";
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
      <Firing />
      <Rules />
      <Receivers />
      <Told />
      <History />
    </Page>
  );
}

/** How it stands in a line: what fires, of how many rules, when they were looked at last, and who hears nothing. */
function Head() {
  const organization = useOrganization();
  const { data: firing } = useSuspenseQuery(alertsOf(organization, true));
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
  return (
    <p className="page-head">
      <Status tone={firing.length > 0 ? "bad" : looking === 0 ? "idle" : "good"}>
        {looking === 0 && firing.length === 0
          ? "All rules are disabled"
          : `${firing.length} firing`}
      </Status>
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

function Firing() {
  const organization = useOrganization();
  const { data: firing } = useSuspenseQuery(alertsOf(organization, true));
  return (
    firing.length > 0 && (
      <section aria-labelledby="firing">
        <h2 id="firing">Firing</h2>
        <OpenableTable
          label="Alerts that fire, newest first"
          items={firing}
          keyOf={({ id = "" }) => id}
          columns={[
            { name: "What", cell: (alert) => <Subject of={alert} /> },
            { name: "Found", grows: true, narrow: "unnamed", cell: Found },
            { name: "Rule", cell: ({ rule }) => rule },
            { name: "Began", cell: ({ since }) => since !== undefined && <Time at={since} /> },
          ]}
          detailsOf={(alert) => <AboutAlert of={alert} />}
        />
      </section>
    )
  );
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
  const { disabled, firing = 0, silencedUntil, evaluatedAt } = one;
  return (
    <>
      {disabled ? (
        <Status tone="idle">disabled</Status>
      ) : firing > 0 ? (
        <Status tone="bad">{`firing (${firing})`}</Status>
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
  const { data: all } = useSuspenseQuery(alertsOf(organization, false));
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
