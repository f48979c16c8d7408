/** The choices by which a list of tasks is filtered. */
import { useNavigate } from "@tanstack/react-router";
import { type ReactNode, useRef, useState } from "react";
import { useShortcut } from "../../shell/keys.ts";
import { Field } from "../../ui/field.tsx";
import { chosenByLink, chosenFilter, Filters } from "../../ui/filters.tsx";
import { SearchField } from "../../ui/search-field.tsx";
import { MAX_TEXT_CHARACTERS, PERIODS, readSearch, type TaskSearch } from "./search.ts";

interface TaskFiltersProps {
  readonly search: TaskSearch;
  /** To choose from; none are offered without. */
  readonly endpoints?: readonly string[];
  readonly deployments?: readonly string[];
  /** What can be done with all that is chosen, at the end of the row. */
  readonly children: ReactNode;
}

const CUSTOM = "custom";

/** What can be chosen from a menu: of more, the name is written, with suggestions. */
const MAX_MENU_CHOICES = 30;

export function TaskFilters({ search, endpoints, deployments, children }: TaskFiltersProps) {
  const navigate = useNavigate();
  const { text, endpoint, deployment, error, key, tags, since, from, until } = search;
  const [isCustom, setCustom] = useState(from !== undefined || until !== undefined);
  const change = (changed: TaskSearch) =>
    void navigate({ to: ".", search: readSearch({ ...search, ...changed }), replace: true });
  const box = useRef<HTMLElement>(null);
  useShortcut("/", () => box.current?.querySelector("input")?.focus());
  return (
    <Filters
      box={box}
      className="task-filters"
      first={
        <SearchField
          label="Search"
          placeholder="Id, text or error"
          maxLength={MAX_TEXT_CHARACTERS}
          value={text}
          onChange={(written) => change({ text: written })}
        />
      }
      chosen={[
        ...chosenFilter(since && PERIODS[since][0], () => change({ since: undefined })),
        ...chosenFilter(between(from, until), () => {
          setCustom(false);
          change({ from: undefined, until: undefined });
        }),
        ...chosenFilter(deployment, () => change({ deployment: undefined })),
        ...chosenFilter(endpoint, () => change({ endpoint: undefined })),
        ...chosenFilter(tags && `Tags: ${tags}`, () => change({ tags: undefined })),
        ...chosenByLink(error && `Error: ${error}`, () => change({ error: undefined })),
        ...chosenByLink(key && `Key: ${key}`, () => change({ key: undefined })),
      ]}
      actions={children}
    >
      <Field label="Time range">
        {(control) => (
          <select
            {...control}
            value={isCustom ? CUSTOM : (since ?? "")}
            onChange={({ target: { value } }) => {
              setCustom(value === CUSTOM);
              if (value !== CUSTOM) {
                change({ since: value as keyof typeof PERIODS, from: undefined, until: undefined });
              }
            }}
          >
            <option value="">Any time</option>
            {Object.entries(PERIODS).map(([word, [label]]) => (
              <option key={word} value={word}>
                {label}
              </option>
            ))}
            <option value={CUSTOM}>From … until …</option>
          </select>
        )}
      </Field>
      {isCustom && (
        <>
          <Moment
            label="From"
            value={from}
            onChange={(time) => change({ since: undefined, from: time })}
          />
          <Moment
            label="Until"
            value={until}
            onChange={(time) => change({ since: undefined, until: time })}
          />
        </>
      )}
      {deployments !== undefined && (
        <Choice
          label="Deployment"
          all={deployments}
          value={deployment}
          onChange={(name) => change({ deployment: name })}
        />
      )}
      {endpoints !== undefined && (
        <Choice
          label="Endpoint"
          all={endpoints}
          value={endpoint}
          onChange={(name) => change({ endpoint: name })}
        />
      )}
      <SearchField
        label="Tags"
        placeholder="tag, tag"
        maxLength={MAX_TEXT_CHARACTERS}
        value={tags}
        onChange={(written) => change({ tags: written })}
      />
    </Filters>
  );
}

/** Two times in words, of which one may be missing. */
function between(from: string | undefined, until: string | undefined): string | undefined {
  const words = [from && `From ${from}`, until && `${from ? "u" : "U"}ntil ${until}`];
  return words.filter(Boolean).join(" ").replaceAll("T", " ") || undefined;
}

interface MomentProps {
  readonly label: string;
  readonly value: string | undefined;
  onChange(time: string): void;
}

/** A time in the zone of the browser. */
function Moment({ label, value = "", onChange }: MomentProps) {
  return (
    <Field label={label}>
      {(control) => (
        <input
          {...control}
          type="datetime-local"
          defaultValue={value}
          onBlur={({ target }) => target.value !== value && onChange(target.value)}
          onKeyDown={(event) => event.key === "Enter" && onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly all: readonly string[];
  readonly value: string | undefined;
  onChange(value: string): void;
}

function Choice({ label, all, value = "", onChange }: ChoiceProps) {
  const none = `All ${label.toLowerCase()}s`;
  if (all.length > MAX_MENU_CHOICES) {
    return (
      <SearchField
        label={label}
        placeholder={none}
        suggestions={all}
        value={value}
        onChange={onChange}
      />
    );
  }
  return (
    <Field label={label}>
      {(control) => (
        <select {...control} value={value} onChange={({ target }) => onChange(target.value)}>
          <option value="">{none}</option>
          {all.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
    </Field>
  );
}
