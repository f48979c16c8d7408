/** The settings of a deployment, and their change. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Fragment, type ReactNode, useState } from "react";
import type {
  DeploymentJson,
  DeploymentSettingsJson,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { deployments } from "../../api/clients.ts";
import { comparisonOf } from "../../api/deployments.ts";
import { isConflict } from "../../api/errors.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { counted } from "../../ui/counted.ts";
import { Field } from "../../ui/field.tsx";
import { formMessage, violationOf } from "../../ui/form.ts";
import { Notice } from "../../ui/notice.tsx";
import { Sectioned } from "../../ui/sections.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { DeploymentFrame } from "./frame.tsx";
import { History } from "./history.tsx";
import { Secrets } from "./secrets.tsx";
import {
  ACCESS,
  changedFields,
  defaultOf,
  SETTING_FIELDS,
  type SettingField,
  type SettingTexts,
  TextFault,
  textsOf,
} from "./setting-fields.ts";
import { SettingPairs } from "./setting-pairs.tsx";
import "./settings.css";

const GROUPS = [...new Set(SETTING_FIELDS.map(({ group }) => group))];
const PROTECTED = "yes";
/** The id of the form. Fields name it, because they cannot be in it: secrets, which stand among them, have forms of their own. */
const FORM = "settings-form";
const CALLERS = "Callers";
const ENVIRONMENT = "Environment";
const HISTORY = "History";

/** Where a group of settings is in the page. */
const idOf = (group: string): string => group.toLowerCase().replaceAll(" ", "-");

/** The name of a setting in violations of `UpdateDeployment`. */
const violated = (field: SettingField): string => `deployment.settings.${field.path}`;

export function DeploymentSettings() {
  return (
    <DeploymentFrame title="Settings">
      {(deployment) => <SettingsPage deployment={deployment} />}
    </DeploymentFrame>
  );
}

function SettingsPage({ deployment }: { readonly deployment: DeploymentJson }) {
  const { isAdmin } = usePerson();
  return (
    <Sectioned
      label="Sections"
      sections={[CALLERS, ...GROUPS.flatMap(withSecrets), ...(isAdmin ? [HISTORY] : [])].map(
        (label) => ({ id: idOf(label), label }),
      )}
    >
      <div className="settings-page">
        <SettingsForm deployment={deployment} />
        {isAdmin && (
          <div className="settings-aside">
            <History deployment={deployment} />
          </div>
        )}
      </div>
    </Sectioned>
  );
}

function SettingsForm({ deployment }: { readonly deployment: DeploymentJson }) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const toast = useToast();
  const { name = "", settings = {}, authorization = false, version = 0 } = deployment;
  /** What was typed and is not saved. The rest follows what others save. */
  const [typed, setTyped] = useState<SettingTexts>({});
  const [callers, setCallers] = useState<boolean>();
  /** The version of what is shown beside the typed texts. */
  const [seenVersion, setSeenVersion] = useState(version);
  const { targetRevision: revision = 0 } = deployment;
  const { data: said } = useQuery({
    ...comparisonOf(organization, name, { revision, base: revision }),
    enabled: revision > 0,
  });
  /** Code that says nothing has an empty message, which JSON leaves out. */
  const code = said && (said.codeSettings ?? {});
  const texts = { ...textsOf(settings), ...typed };
  const changed = changedFields(settings, typed);
  const opens = callers !== undefined && callers !== authorization;
  const isDirty = changed.length > 0 || opens;
  const isBehind = isDirty && seenVersion !== version;
  const faults = faultsOf(changed, typed);
  const saving = useMutation({
    mutationFn: () => {
      const values: DeploymentSettingsJson = Object.assign(
        {},
        ...changed.map((field) => field.write(typed[field.name] ?? "")),
      );
      const paths = changed.map((field) => `settings.${field.name}`);
      return deployments.updateDeployment({
        organization,
        deployment: { name, version, settings: values, ...(opens && { authorization: callers }) },
        updateMask: [...paths, ...(opens ? ["authorization"] : [])].join(","),
      });
    },
    onSuccess: (saved) => {
      queryClient.setQueryData(["deployment", organization, name], saved);
      setSeenVersion(saved.version ?? 0);
      setTyped({});
      setCallers(undefined);
      toast(`Saved the settings of ${name}`);
    },
    onError: () =>
      void queryClient.invalidateQueries({ queryKey: ["deployment", organization, name] }),
  });
  /** Who begins to type has before them what is stored now. */
  const seeNow = () => {
    if (!isDirty) {
      setSeenVersion(version);
    }
  };
  const known = SETTING_FIELDS.map(violated);
  const message = formMessage(saving.error, ...known);
  return (
    <div className="settings">
      <form
        id={FORM}
        onSubmit={(event) => {
          event.preventDefault();
          if (isDirty && faults.size === 0 && !saving.isPending) {
            saving.mutate();
          }
        }}
      />
      <fieldset id={idOf(CALLERS)}>
        <legend>{CALLERS}</legend>
        <Field
          label="Who may call it"
          hint={hintOf("public", "Callers of a protected one need a token with access to it.")}
          error={violationOf(saving.error, "deployment.authorization")}
        >
          {(control) => (
            <select
              {...control}
              form={FORM}
              value={(callers ?? authorization) ? PROTECTED : ""}
              onChange={({ target }) => {
                seeNow();
                setCallers(target.value === PROTECTED);
              }}
            >
              <option value="">Public</option>
              <option value={PROTECTED}>Protected</option>
            </select>
          )}
        </Field>
      </fieldset>
      {GROUPS.map((group) => (
        <Fragment key={group}>
          <fieldset id={idOf(group)}>
            <legend>{group}</legend>
            {SETTING_FIELDS.filter((field) => field.group === group).map((field) => (
              <Setting
                key={field.name}
                field={field}
                hint={hintOf(defaultOf(field, code, texts), field.hint)}
                text={texts[field.name] ?? ""}
                error={faults.get(field.name) ?? violationOf(saving.error, violated(field))}
                onChange={(text) => {
                  seeNow();
                  setTyped((before) => ({ ...before, [field.name]: text }));
                }}
              />
            ))}
          </fieldset>
          {group === ENVIRONMENT && <Secrets deployment={deployment} />}
        </Fragment>
      ))}
      <div className={isDirty ? "settings-bar dirty" : "settings-bar"}>
        {isBehind && (
          <Notice kind="warning">
            Somebody else has saved other settings meanwhile. What you have not changed is shown as
            it is now; save to keep your changes.
          </Notice>
        )}
        {message && !(isBehind && isConflict(saving.error)) && (
          <Notice kind="error">{message}</Notice>
        )}
        <p role="status">
          {isDirty
            ? `${counted(changed.length + Number(opens), "change")}. ${consequenceOf(changed)}`
            : "No changes to save."}
        </p>
        {isDirty && (
          <Button
            onClick={() => {
              setTyped({});
              setCallers(undefined);
              saving.reset();
            }}
          >
            Discard
          </Button>
        )}
        <Button
          kind="primary"
          type="submit"
          form={FORM}
          disabled={!isDirty || faults.size > 0}
          isBusy={saving.isPending}
        >
          Save
        </Button>
      </div>
    </div>
  );
}

/** The secrets are below the variables, as workers find both in their environment. */
const withSecrets = (group: string): readonly string[] =>
  group === ENVIRONMENT ? [group, "Secrets"] : [group];

/** What the change of these settings does to the workers. */
function consequenceOf(changed: readonly SettingField[]): string {
  const replacing = changed.filter((field) => field.replacesWorkers);
  return replacing.length === 0
    ? "These changes take effect at once; no worker starts anew."
    : `Workers are replaced one after another, and no call fails: ${replacing
        .map(({ label }) => label.toLowerCase())
        .join("; ")}.`;
}

/** Each field says its default in the first line of its hint. */
const hintOf = (standard: string, hint: string): ReactNode => (
  <>
    <span className="setting-default">Default: {standard}</span>
    {hint}
  </>
);

/** What is wrong with the texts, by the names of their settings. */
function faultsOf(changed: readonly SettingField[], typed: SettingTexts): Map<string, string> {
  const faults = new Map<string, string>();
  for (const { name, write } of changed) {
    try {
      write(typed[name] ?? "");
    } catch (err) {
      if (!(err instanceof TextFault)) {
        throw err;
      }
      faults.set(name, err.message);
    }
  }
  return faults;
}

/** What the network of workers may be. */
const NETWORKS = [
  [ACCESS.none, "None"],
  [ACCESS.open, "The internet"],
  [ACCESS.allow, "These hosts alone"],
] as const;

/** A choice of three, and the list of hosts for the third. */
function Network({ field, hint, text, error, onChange }: SettingProps) {
  const chosen = text === ACCESS.open || text === ACCESS.none ? text : ACCESS.allow;
  return (
    <>
      <Field label={field.label} hint={hint}>
        {(control) => (
          <select
            {...control}
            form={FORM}
            value={chosen}
            onChange={({ target: { value } }) => onChange(value === ACCESS.allow ? "" : value)}
          >
            {NETWORKS.map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        )}
      </Field>
      {chosen === ACCESS.allow && (
        <Field label="Hosts" hint="Workers reach these addresses, and no others." error={error}>
          {(control) => (
            <textarea
              {...control}
              form={FORM}
              className="code"
              rows={2}
              spellCheck={false}
              placeholder="api.example.com:443"
              value={text}
              onChange={({ target }) => onChange(target.value)}
            />
          )}
        </Field>
      )}
    </>
  );
}

interface SettingProps {
  readonly field: SettingField;
  /** Its default and its own hint. */
  readonly hint: ReactNode;
  readonly text: string;
  readonly error: string | undefined;
  onChange(text: string): void;
}

function Setting(props: SettingProps) {
  const { field, hint, text, error, onChange } = props;
  if (field.kind === "network") {
    return <Network {...props} />;
  }
  if (field.kind === "pairs") {
    return <SettingPairs {...props} form={FORM} />;
  }
  const { label, kind, mayBeEmpty, choices = [], min, step } = field;
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) =>
        kind === "choice" ? (
          <select
            {...control}
            form={FORM}
            value={text}
            onChange={({ target }) => onChange(target.value)}
          >
            {choices.map(([value, words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        ) : (
          <input
            {...control}
            form={FORM}
            {...(kind === "number" && { type: "number", min, step: step ?? 1 })}
            placeholder={mayBeEmpty ? "Default" : undefined}
            value={text}
            onChange={({ target }) => onChange(target.value)}
          />
        )
      }
    </Field>
  );
}
