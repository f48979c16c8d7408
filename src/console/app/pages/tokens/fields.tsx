/** The fields that a new and a changed token share. */

import { useQuery } from "@tanstack/react-query";
import type { TokenJson } from "../../../../../gen/tessera/v1/token_pb.js";
import { deploymentsOf } from "../../api/deployments.ts";
import { useOrganization } from "../../api/session.ts";
import { ACCESS, type Access } from "../../api/token-access.ts";
import { isAlone, isForDeployments } from "../../api/tokens.ts";
import { Field } from "../../ui/field.tsx";
import { useFinder } from "../../ui/finder.tsx";
import { violationOf } from "../../ui/form.ts";

/** What the dialogs of one token are given. */
export interface TokenDialogProps {
  readonly token: TokenJson;
  onClose(): void;
}

export interface TokenForm {
  readonly name: string;
  readonly description: string;
  readonly access: readonly Access[];
  readonly allDeployments: boolean;
  readonly deployments: readonly string[];
}

/** Name of a token, as the API limits it (proto/tessera/v1/token.proto). */
const MAX_NAME_CHARACTERS = 100;
/** Description of a token, as the API limits it. */
const MAX_DESCRIPTION_CHARACTERS = 1_000;

/** The names in the API of the fields that are shown here. */
export const FIELDS = ["name", "description", "access", "deployments", "all_deployments"] as const;

export interface FieldsProps {
  readonly value: TokenForm;
  /** Whether it is an organization's: only these may have monitoring. */
  readonly isOrganizations: boolean;
  readonly error: unknown;
  onChange(value: TokenForm): void;
}

export function Fields({ value, isOrganizations, error, onChange }: FieldsProps) {
  const set = (changed: Partial<TokenForm>) => onChange({ ...value, ...changed });
  const namesDeployments = isForDeployments(value.access);
  const accessFault = violationOf(error, "access", "token.access");
  return (
    <>
      <Field label="Name" error={violationOf(error, "name", "token.name")}>
        {(control) => (
          <input
            {...control}
            data-autofocus
            required
            maxLength={MAX_NAME_CHARACTERS}
            autoComplete="off"
            value={value.name}
            onChange={(event) => set({ name: event.target.value })}
          />
        )}
      </Field>
      <Field label="Description" error={violationOf(error, "description", "token.description")}>
        {(control) => (
          <input
            {...control}
            maxLength={MAX_DESCRIPTION_CHARACTERS}
            autoComplete="off"
            placeholder="What it is for (optional)"
            value={value.description}
            onChange={(event) => set({ description: event.target.value })}
          />
        )}
      </Field>
      <fieldset className="choices">
        <legend>Access</legend>
        {(Object.keys(ACCESS) as Access[])
          .filter((access) => isOrganizations || access !== "TOKEN_ACCESS_MONITORING")
          .map((access) => (
            <label key={access} className="choice">
              <input
                type="checkbox"
                checked={value.access.includes(access)}
                onChange={() => set({ access: toggled(value.access, access) })}
              />
              <span>
                {ACCESS[access].name}
                <span className="hint">{ACCESS[access].hint}</span>
              </span>
            </label>
          ))}
        {accessFault && (
          <p className="field-error">
            {value.access.length === 0 ? "Choose at least one kind of access" : accessFault}
          </p>
        )}
      </fieldset>
      {namesDeployments && <DeploymentChoice value={value} error={error} onChange={set} />}
    </>
  );
}

/** Some access goes with no other. */
function toggled(all: readonly Access[], one: Access): readonly Access[] {
  if (all.includes(one)) {
    return all.filter((other) => other !== one);
  }
  return isAlone(one) ? [one] : [...all.filter((other) => !isAlone(other)), one];
}

interface DeploymentChoiceProps extends Pick<FieldsProps, "value" | "error"> {
  onChange(changed: Partial<TokenForm>): void;
}

function DeploymentChoice({ value, error, onChange }: DeploymentChoiceProps) {
  const { data: known = [] } = useQuery(deploymentsOf(useOrganization()));
  const names = [...new Set([...known.map(({ name = "" }) => name), ...value.deployments])];
  const { shown, field } = useFinder(names, { noun: "deployments", nameOf: (name) => name });
  const fault = violationOf(error, "deployments", "token.deployments", "all_deployments");
  const isChosen = value.allDeployments || value.deployments.length > 0;
  return (
    <fieldset className="choices">
      <legend>
        {value.access.some(isAlone)
          ? "Deployments whose workers join with it"
          : "Deployments that it may call"}
      </legend>
      <label className="choice">
        <input
          type="checkbox"
          checked={value.allDeployments}
          onChange={(event) => onChange({ allDeployments: event.target.checked, deployments: [] })}
        />
        <span>
          All deployments
          <span className="hint">Future ones included.</span>
        </span>
      </label>
      {!value.allDeployments && (
        <>
          {field}
          <div className="choice-list">
            {shown.map((name) => (
              <label key={name} className="choice">
                <input
                  type="checkbox"
                  checked={value.deployments.includes(name)}
                  onChange={(event) =>
                    onChange({
                      deployments: event.target.checked
                        ? [...value.deployments, name]
                        : value.deployments.filter((one) => one !== name),
                    })
                  }
                />
                <span>{name}</span>
              </label>
            ))}
            {names.length === 0 && <p className="hint">There are no deployments yet.</p>}
          </div>
        </>
      )}
      {fault && (
        <p className="field-error">{isChosen ? fault : "Choose at least one deployment"}</p>
      )}
    </fieldset>
  );
}
