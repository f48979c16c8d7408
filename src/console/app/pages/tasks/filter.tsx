/** The choices by which a list of tasks is filtered. */
import { useNavigate } from "@tanstack/react-router";
import { Field } from "../../ui/field.tsx";
import { SearchField } from "../../ui/search-field.tsx";
import { readSearch, type TaskSearch, WORDS } from "./search.ts";

interface TaskFiltersProps {
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
    <section className="filters" aria-label="Filter">
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
          <SearchField
            label="Error contains"
            value={search.error}
            onChange={(error) => change({ error })}
          />
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
