/** The choices by which a list of tasks is filtered. */
import { useNavigate } from "@tanstack/react-router";
import { Field } from "../../ui/field.tsx";
import { readSearch, type TaskSearch, WORDS } from "./search.ts";

export interface TaskFiltersProps {
  readonly search: TaskSearch;
  /** To choose from; none are offered without. */
  readonly endpoints?: readonly string[];
  readonly deployments?: readonly string[];
}

export function TaskFilters({ search, endpoints, deployments }: TaskFiltersProps) {
  const navigate = useNavigate();
  const change = (changed: { readonly [Name in keyof TaskSearch]: TaskSearch[Name] | undefined }) =>
    void navigate({ to: ".", search: readSearch({ ...search, ...changed }), replace: true });
  return (
    <section className="task-filters" aria-label="Filter">
      <Field label="State">
        {(control) => (
          <select
            {...control}
            value={search.status ?? ""}
            onChange={({ target }) => change({ status: target.value })}
          >
            <option value="">any</option>
            {WORDS.map(([, word]) => (
              <option key={word}>{word}</option>
            ))}
          </select>
        )}
      </Field>
      {endpoints !== undefined && (
        <Choice
          label="Endpoint"
          all={endpoints}
          value={search.endpoint}
          onChange={(endpoint) => change({ endpoint })}
        />
      )}
      {deployments !== undefined && (
        <>
          <Choice
            label="Deployment"
            all={deployments}
            value={search.deployment}
            onChange={(deployment) => change({ deployment })}
          />
          <ErrorText value={search.error} onChange={(error) => change({ error })} />
        </>
      )}
    </section>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly all: readonly string[];
  readonly value: string | undefined;
  onChange(value: string): void;
}

function Choice({ label, all, value = "", onChange }: ChoiceProps) {
  return (
    <Field label={label}>
      {(control) => (
        <select {...control} value={value} onChange={({ target }) => onChange(target.value)}>
          <option value="">any</option>
          {all.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Asks the server when the person has written, not with each letter. */
function ErrorText({
  value = "",
  onChange,
}: Pick<ChoiceProps, "onChange"> & { readonly value: string | undefined }) {
  return (
    <Field label="Error contains">
      {(control) => (
        <input
          {...control}
          key={value}
          type="search"
          maxLength={200}
          defaultValue={value}
          onBlur={({ target }) => onChange(target.value)}
          onKeyDown={(event) => event.key === "Enter" && onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
