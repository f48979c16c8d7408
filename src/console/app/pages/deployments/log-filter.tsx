/** The choices by which the log of a deployment is filtered. */
import { useNavigate } from "@tanstack/react-router";
import { Field } from "../../ui/field.tsx";
import { SearchField } from "../../ui/search-field.tsx";
import { LEAST_LEVELS, type LogSearch, PERIODS, readLogSearch } from "./log-search.ts";

export function LogFilter({ search }: { readonly search: LogSearch }) {
  const navigate = useNavigate();
  const change = (changed: Readonly<Record<string, string>>) =>
    void navigate({ to: ".", search: readLogSearch({ ...search, ...changed }), replace: true });
  return (
    <section className="filters" aria-label="Filter">
      <SearchField
        label="Search"
        value={search.search}
        onChange={(text) => change({ search: text })}
      />
      <Field label="Level">
        {(control) => (
          <select
            {...control}
            value={search.level ?? ""}
            onChange={({ target }) => change({ level: target.value })}
          >
            <option value="">any</option>
            {Object.entries(LEAST_LEVELS).map(([level, label]) => (
              <option key={level} value={level}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Written in">
        {(control) => (
          <select
            {...control}
            value={search.since ?? ""}
            onChange={({ target }) => change({ since: target.value })}
          >
            <option value="">any time</option>
            {Object.entries(PERIODS).map(([since, [label]]) => (
              <option key={since} value={since}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <SearchField
        label="Task"
        value={search.task}
        maxLength={64}
        onChange={(task) => change({ task: task.trim() })}
      />
    </section>
  );
}
