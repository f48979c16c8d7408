/** The choices by which a list of tasks is filtered. */
import { useNavigate } from "@tanstack/react-router";
import { Field } from "../../ui/field.tsx";
import { readSearch, type TaskSearch, WORDS } from "./search.ts";

export function TaskFilters({
  search,
  endpoints,
}: {
  readonly search: TaskSearch;
  readonly endpoints: readonly string[];
}) {
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
      <Field label="Endpoint">
        {(control) => (
          <select
            {...control}
            value={search.endpoint ?? ""}
            onChange={({ target }) => change({ endpoint: target.value })}
          >
            <option value="">any</option>
            {endpoints.map((endpoint) => (
              <option key={endpoint}>{endpoint}</option>
            ))}
          </select>
        )}
      </Field>
    </section>
  );
}
