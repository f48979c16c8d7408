/** The dialog in which an alert rule is written: made, or changed beside others who change it too. */
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { AlertRuleJson } from "../../../../../gen/tessera/v1/alert_pb.js";
import { alerts, rulesOf } from "../../api/alerts.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { useSeenVersion } from "../../ui/use-seen-version.ts";

/** What rules look at, the unit of their threshold, and its default. */
const KINDS = {
  ALERT_KIND_OLDEST_TASK_WAITS: ["The oldest task waits longer than", "seconds", 300],
  ALERT_KIND_FAILURES: ["The share of failed tasks within ten minutes is above", "percent", 5],
  ALERT_KIND_DEPLOYMENT_DEGRADED: ["A deployment is degraded or has failed", "", 0],
  ALERT_KIND_WORKER_RESTARTS: ["Workers restart within ten minutes more than", "times", 3],
  ALERT_KIND_TOKEN_ENDS: ["A token ends within", "days", 7],
  ALERT_KIND_WEBHOOK_OFF: ["A webhook or a receiver is disabled or failing", "", 0],
  ALERT_KIND_BUDGET_USED: ["The used part of a budget is at least", "percent", 80],
  ALERT_KIND_DISK_FREE: ["The free part of a node's disk is below", "percent", 10],
} as const satisfies Partial<
  Record<NonNullable<AlertRuleJson["kind"]>, readonly [string, string, number]>
>;

type Kind = keyof typeof KINDS;

/** Whether deployments may be chosen for a kind. */
const isOfDeployments = (kind: Kind): boolean =>
  kind !== "ALERT_KIND_TOKEN_ENDS" && kind !== "ALERT_KIND_DISK_FREE";

/** What a rule says, as somebody else has left it. */
function inWords({ condition, deployments = [], receivers = [], hold, disabled }: AlertRuleJson) {
  return [
    condition,
    `of ${deployments.join(" ") || "all"}`,
    `notifies ${receivers.join(" ") || "nobody"}`,
    `hold time ${hold}`,
    ...(disabled ? ["disabled"] : []),
  ].join(", ");
}

interface RuleFormProps {
  /** Undefined: one is created. */
  readonly rule: AlertRuleJson | undefined;
  /** Names of those that may be told. */
  readonly receivers: readonly string[];
  onDone(): void;
  onClose(): void;
}

export function RuleForm({ rule, receivers, onDone, onClose }: RuleFormProps) {
  const organization = useOrganization();
  const { isOperator } = usePerson();
  const [kind, setKind] = useState((rule?.kind ?? "ALERT_KIND_OLDEST_TASK_WAITS") as Kind);
  const [, unit, usual] = KINDS[kind];
  const kinds = (Object.keys(KINDS) as Kind[]).filter(
    (one) => isOperator || one !== "ALERT_KIND_DISK_FREE",
  );
  const queryClient = useQueryClient();
  const { name = "" } = rule ?? {};
  const sendSeen = useSeenVersion<AlertRuleJson>({
    thing: rule,
    read: async () => {
      const asked = { ...rulesOf(organization), staleTime: 0 };
      return (await queryClient.fetchQuery(asked)).find((one) => one.name === name);
    },
    wordsOf: inWords,
  });
  const send = (values: FormData) => {
    const words = (name: string) =>
      textOf(values, name)
        .split(/[\s,]+/)
        .filter(Boolean);
    const settings: AlertRuleJson = {
      threshold: Number(textOf(values, "threshold")),
      deployments: words("deployments"),
      receivers: values.getAll("receiver").map(String),
      hold: `${Math.round(Number(textOf(values, "hold")) * 60)}s`,
    };
    return rule === undefined
      ? alerts.createAlertRule({
          organization,
          rule: { name: textOf(values, "rule.name"), kind, ...settings },
        })
      : sendSeen((version) =>
          alerts.updateAlertRule({
            organization,
            updateMask: Object.keys(settings).join(","),
            rule: { ...settings, name, version },
          }),
        );
  };
  return (
    <Dialog title={rule === undefined ? "Create rule" : `Edit ${name}`} onClose={onClose}>
      <FieldsForm
        fields={
          rule === undefined
            ? [{ name: "rule.name", label: "Name", autoComplete: "off", maxLength: 63 }]
            : []
        }
        submit={rule === undefined ? "Create" : "Save"}
        needsChange={rule !== undefined}
        send={send}
        onDone={onDone}
        onClose={onClose}
      >
        {rule === undefined && (
          <Field label="Fires when">
            {(control) => (
              <select
                {...control}
                value={kind}
                onChange={({ target }) => setKind(target.value as Kind)}
              >
                {kinds.map((one) => (
                  <option key={one} value={one}>
                    {KINDS[one][0]}
                    {KINDS[one][1] !== "" && ` … ${KINDS[one][1]}`}
                  </option>
                ))}
              </select>
            )}
          </Field>
        )}
        <div className="field-row">
          {unit !== "" && (
            <Field label={`Threshold, in ${unit}`}>
              {(control) => (
                <input
                  {...control}
                  key={kind}
                  name="threshold"
                  type="number"
                  required
                  min={unit === "percent" ? 0.1 : 1}
                  max={unit === "percent" ? 100 : undefined}
                  step="any"
                  defaultValue={rule?.threshold ?? usual}
                />
              )}
            </Field>
          )}
          <Field
            label="Hold time, in minutes"
            hint="How long the condition must hold before the alert fires."
          >
            {(control) => (
              <input
                {...control}
                name="hold"
                type="number"
                required
                min={1}
                max={1_440}
                step="any"
                defaultValue={rule?.hold === undefined ? 2 : Number.parseFloat(rule.hold) / 60}
              />
            )}
          </Field>
        </div>
        {isOfDeployments(kind) && (
          <Field label="Deployments" hint="Names with spaces between. Empty: all deployments.">
            {(control) => (
              <input
                {...control}
                name="deployments"
                autoComplete="off"
                autoCapitalize="none"
                spellCheck={false}
                defaultValue={rule?.deployments?.join(" ")}
              />
            )}
          </Field>
        )}
        <fieldset className="choices">
          <legend>Notifies</legend>
          {receivers.length === 0 && (
            <p className="hint">No receivers yet. Without one, alerts are only on this page.</p>
          )}
          {receivers.map((name) => (
            <label key={name} className="choice">
              <input
                type="checkbox"
                name="receiver"
                value={name}
                defaultChecked={
                  rule === undefined ? receivers.length === 1 : rule.receivers?.includes(name)
                }
              />
              <span>{name}</span>
            </label>
          ))}
        </fieldset>
      </FieldsForm>
    </Dialog>
  );
}
