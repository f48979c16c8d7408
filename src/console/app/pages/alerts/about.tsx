/** Why an alert fired and who was notified, and what a rule has found: what their rows open. */
import { useSuspenseInfiniteQuery, useSuspenseQuery } from "@tanstack/react-query";
import type { AlertJson, AlertRuleJson } from "../../../../../gen/tessera/v1/alert_pb.js";
import { alertsOf, rulesOf, toldOf } from "../../api/alerts.ts";
import { alertIdOf, deliveryStateOf } from "../../api/deliveries.ts";
import { capitalized } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { between, duration, durationMs } from "../../ui/duration.ts";
import { Facts } from "../../ui/facts.tsx";
import { ExactTime, Time } from "../../ui/time.tsx";
import { Subject } from "./subject.tsx";

/** Alerts of a rule that its row shows. */
const MAX_SHOWN_ALERTS = 5;

export function AboutAlert({ of: alert }: { readonly of: AlertJson }) {
  const organization = useOrganization();
  const { data: rules } = useSuspenseQuery(rulesOf(organization));
  const { data: deliveries } = useSuspenseInfiniteQuery(toldOf(organization));
  const { rule: name = "", text = "", since, firedAt, clearedAt } = alert;
  const rule = rules.find((one) => one.name === name);
  const told = deliveries.filter((one) => alertIdOf(one) === alert.id);
  return (
    <Facts
      entries={{
        Found: capitalized(text),
        Rule: rule === undefined ? `${name}, which is deleted` : `${name}: ${rule.condition}`,
        ...(rule && { Holds: holdText(rule) }),
        ...(since && { "True since": <ExactTime at={since} /> }),
        ...(firedAt && { Fired: <ExactTime at={firedAt} /> }),
        ...(clearedAt && { Cleared: <ExactTime at={clearedAt} /> }),
        ...(rule && { Notifies: rule.receivers?.join(", ") || "nobody" }),
        ...(told.length > 0 && {
          Deliveries: told.map(
            ({ id, alert: transition = "", webhook, createdAt = "", ...one }) => (
              <div key={id}>
                {webhook || "a deleted receiver"}, {TRANSITIONS[transition]}: {deliveryStateOf(one)}
                , <Time at={createdAt} />
              </div>
            ),
          ),
        }),
      }}
    />
  );
}

/** What happened to an alert, in a word; a test of a receiver is about no alert. */
export const TRANSITIONS: Readonly<Record<string, string>> = {
  ALERT_TRANSITION_FIRING: "firing",
  ALERT_TRANSITION_CLEARED: "cleared",
};

/** What it looks at, and what it has found. */
export function AboutRule({ of: rule }: { readonly of: AlertRuleJson }) {
  const organization = useOrganization();
  const { data: firing } = useSuspenseQuery(alertsOf(organization, "firing"));
  const { data: all } = useSuspenseQuery(alertsOf(organization, "fired"));
  const { name, deployments = [], evaluatedAt, createdAt, createdBy } = rule;
  const cleared = all.filter(({ clearedAt }) => clearedAt !== undefined);
  const found = [...firing, ...cleared].filter((alert) => alert.rule === name);
  return (
    <Facts
      entries={{
        "Has found":
          found.length === 0
            ? "nothing yet"
            : found.slice(0, MAX_SHOWN_ALERTS).map((alert) => (
                <div key={alert.id}>
                  <Subject of={alert} />: {alert.text}, <Lasted of={alert} />
                </div>
              )),
        Holds: holdText(rule),
        Deployments: deployments.join(", ") || "all",
        ...(evaluatedAt && { "Last checked": <ExactTime at={evaluatedAt} /> }),
        ...(createdAt && {
          Created: (
            <>
              <Time at={createdAt} /> by <bdi>{createdBy}</bdi>
            </>
          ),
        }),
      }}
    />
  );
}

function Lasted({ of: { firedAt = "", clearedAt } }: { readonly of: AlertJson }) {
  return (
    <>
      fired <Time at={firedAt} />
      {clearedAt !== undefined && `, for ${between(firedAt, clearedAt, 0)}`}
    </>
  );
}

/** For how long it is true before it fires, and not true before it clears. */
const holdText = ({ hold = "0s" }: AlertRuleJson): string =>
  `for ${duration(durationMs(hold))} before it fires or clears`;
