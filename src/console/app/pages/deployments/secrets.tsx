/** The secrets of a deployment: set, set anew, removed, and confirmed; their values are shown to nobody. */
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type { DeploymentJson, SecretJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { deployments } from "../../api/clients.ts";
import { revisionsOf, secretsOf } from "../../api/deployments.ts";
import { isConflict } from "../../api/errors.ts";
import { useOrganization, usePerson } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { DataTable } from "../../ui/data-table.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { formMessage, violationOf } from "../../ui/form.ts";
import { FormActions } from "../../ui/form-actions.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";

type Asked =
  | { readonly what: "set"; readonly name?: string }
  | { readonly what: "delete"; readonly name: string }
  | { readonly what: "confirm" };

interface OfDeployment {
  readonly deployment: DeploymentJson;
}

export function Secrets({ deployment }: OfDeployment) {
  const organization = useOrganization();
  const { isAdmin } = usePerson();
  const { name = "", version = 0, secretsWithheld: withheld = [] } = deployment;
  const { data: secrets = [], isPending } = useQuery({
    ...secretsOf(organization, name, version),
    placeholderData: keepPreviousData,
  });
  const [asked, setAsked] = useState<Asked>();
  const close = () => setAsked(undefined);
  return (
    <section aria-labelledby="secrets" className="card">
      <header className="section-header">
        <h2 id="secrets">Secrets</h2>
        <Button onClick={() => setAsked({ what: "set" })}>Set secret</Button>
      </header>
      {withheld.length > 0 && (
        <Notice kind="warning">
          <p>
            Workers run without {withheld.join(", ")}: somebody who may not use secrets has changed
            the code, the variables or the secrets.{" "}
            {isAdmin ? "Look at them, and confirm." : "An admin can confirm that."}
          </p>
          {isAdmin && (
            <Button onClick={() => setAsked({ what: "confirm" })}>Review and confirm</Button>
          )}
        </Notice>
      )}
      {secrets.length > 0 ? (
        <SecretTable secrets={secrets} onAsk={setAsked} />
      ) : (
        !isPending && (
          <p className="secondary">
            No secrets yet. A worker finds a secret in its environment, as it finds a variable; its
            value is stored encrypted and shown to nobody.
          </p>
        )
      )}
      {asked?.what === "set" && (
        <SetSecret deployment={deployment} secret={asked.name} onClose={close} />
      )}
      {asked?.what === "delete" && (
        <DeleteSecret deployment={deployment} secret={asked.name} onClose={close} />
      )}
      {asked?.what === "confirm" && <ConfirmSecrets deployment={deployment} onClose={close} />}
    </section>
  );
}

interface SecretTableProps {
  readonly secrets: readonly SecretJson[];
  onAsk(asked: Asked): void;
}

function SecretTable({ secrets, onAsk }: SecretTableProps) {
  return (
    <DataTable
      label="Secrets, by name"
      items={secrets}
      keyOf={({ name = "" }) => name}
      columns={[
        {
          name: "Name",
          cell: ({ name, withheld }) => (
            <>
              <code>{name}</code>
              {withheld && <span className="secondary">withheld</span>}
            </>
          ),
        },
        {
          name: "Set",
          cell: ({ setAt, setBy }) => (
            <>
              {setAt !== undefined && <Time at={setAt} />}
              <span className="secondary">{setBy}</span>
            </>
          ),
        },
      ]}
      actions={({ name = "" }) => (
        <Menu
          id={`secret-${name}`}
          label={`Actions for ${name}`}
          items={[
            { label: "Set anew", run: () => onAsk({ what: "set", name }) },
            { label: "Delete", isDangerous: true, run: () => onAsk({ what: "delete", name }) },
          ]}
        />
      )}
    />
  );
}

/** What a change of secrets starts anew. */
function restartsOf({ status, workers = 0 }: DeploymentJson): string {
  if (status === "DEPLOYMENT_STATUS_STOPPED") {
    return "It is stopped, so nothing starts anew.";
  }
  const replaced = ["No worker runs now, so none is", "Its worker is"][workers];
  return workers === 0
    ? `${replaced} replaced.`
    : `${replaced ?? `Its ${workers} workers are, one after another,`} replaced, and no call fails.`;
}

interface SecretProps extends OfDeployment {
  onClose(): void;
}

/** Puts what the server answered in the place of what was read. */
function useStored(name: string): (stored: DeploymentJson) => void {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  return (stored) => queryClient.setQueryData(["deployment", organization, name], stored);
}

function SetSecret({
  deployment,
  secret,
  onClose,
}: SecretProps & { readonly secret: string | undefined }) {
  const organization = useOrganization();
  const { isAdmin } = usePerson();
  const queryClient = useQueryClient();
  const toast = useToast();
  const { name = "", version = 0, settings } = deployment;
  const store = useStored(name);
  const [given, setGiven] = useState(secret ?? "");
  const [value, setValue] = useState("");
  /** The version of the deployment that the person knows of. */
  const [seen] = useState(version);
  const setting = useMutation({
    mutationFn: (known: number) =>
      deployments.updateSecrets({
        organization,
        deployment: name,
        secrets: { [given]: value },
        version: known,
      }),
    onSuccess: (stored) => {
      store(stored);
      toast(`${given} is set`);
      onClose();
    },
    // Read before it is told: who sets it again has seen it.
    onError: () => queryClient.invalidateQueries({ queryKey: ["deployment", organization, name] }),
  });
  const replaces = secret === undefined && (settings?.secretNames ?? []).includes(given);
  const others = settings?.secretNames?.filter((one) => one !== given) ?? [];
  const violated = `secrets.${given}`;
  return (
    <Dialog title={secret === undefined ? "Set secret" : `Set ${secret} anew`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!setting.isPending) {
            setting.mutate(setting.error === null ? seen : version);
          }
        }}
      >
        {secret === undefined && (
          <Field
            label="Name"
            hint={
              replaces
                ? "It has a value, which this one replaces."
                : "As the code reads it from its environment, such as API_KEY."
            }
            error={violationOf(setting.error, violated)}
          >
            {(control) => (
              <input
                {...control}
                className="code"
                required
                maxLength={128}
                pattern="[A-Za-z_][A-Za-z0-9_]*"
                title="Letters, digits and underscores, and no digit first"
                autoComplete="off"
                spellCheck={false}
                value={given}
                onChange={({ target }) => setGiven(target.value)}
              />
            )}
          </Field>
        )}
        <Field label="Value" hint="Nobody can read it here again, not even you.">
          {(control) => (
            <textarea
              {...control}
              className="code masked"
              required
              rows={3}
              autoComplete="off"
              spellCheck={false}
              value={value}
              onChange={({ target }) => setValue(target.value)}
            />
          )}
        </Field>
        {!isAdmin && others.length > 0 && (
          <Notice kind="warning">
            You may not use the secrets of others: workers run without {others.join(", ")} until an
            admin has confirmed this.
          </Notice>
        )}
        {setting.error && (
          <Notice kind="error">
            {isConflict(setting.error)
              ? "Somebody else has changed this deployment meanwhile. Set it again to replace what they set."
              : formMessage(setting.error, violated)}
          </Notice>
        )}
        <p className="secondary">{restartsOf(deployment)}</p>
        <FormActions action="Set" isBusy={setting.isPending} onClose={onClose} />
      </form>
    </Dialog>
  );
}

function DeleteSecret({ deployment, secret, onClose }: SecretProps & { readonly secret: string }) {
  const organization = useOrganization();
  const toast = useToast();
  const { name = "", version = 0 } = deployment;
  const store = useStored(name);
  return (
    <Confirm
      title={`Delete ${secret}?`}
      action="Delete"
      run={async () =>
        store(
          await deployments.updateSecrets({
            organization,
            deployment: name,
            removeSecrets: [secret],
            version,
          }),
        )
      }
      onDone={() => {
        toast(`${secret} is deleted`);
        onClose();
      }}
      onClose={onClose}
    >
      <p>Nobody can bring its value back. {restartsOf(deployment)}</p>
    </Confirm>
  );
}

/** What would have the secrets: the code, and the variables, which decide where secrets go. */
function ConfirmSecrets({ deployment, onClose }: SecretProps) {
  const organization = useOrganization();
  const toast = useToast();
  const { name = "", targetRevision, settings, secretsWithheld = [] } = deployment;
  const store = useStored(name);
  /** Nothing is confirmed that came after this was shown. */
  const [version] = useState(deployment.version ?? 0);
  const { data: revisions = [] } = useQuery(revisionsOf(organization, name));
  const target = revisions.find(({ revision }) => revision === targetRevision);
  return (
    <Confirm
      title="Give these the secrets?"
      action="Confirm"
      run={async () =>
        store(await deployments.confirmSecrets({ organization, deployment: name, version }))
      }
      onDone={() => {
        toast(`${name} has its secrets`);
        onClose();
      }}
      onClose={onClose}
    >
      <dl className="facts">
        <div>
          <dt>Code</dt>
          <dd>
            revision {targetRevision}, by <bdi>{target?.createdBy}</bdi>
            {target?.secretsConfirmedBy && `, confirmed by ${target.secretsConfirmedBy}`}
          </dd>
        </div>
        <div>
          <dt>Variables</dt>
          <dd>
            {Object.entries(settings?.env ?? {}).map(([variable, value]) => (
              <div key={variable}>
                <code>
                  {variable}={value}
                </code>
              </div>
            ))}
            {Object.keys(settings?.env ?? {}).length === 0 && "none"}
          </dd>
        </div>
        <div>
          <dt>Secrets</dt>
          <dd>{secretsWithheld.join(", ")}</dd>
        </div>
      </dl>
      <p className="secondary">{restartsOf(deployment)}</p>
    </Confirm>
  );
}
