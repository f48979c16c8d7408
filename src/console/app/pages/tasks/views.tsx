/**
 * Views: filters with a name, which a person keeps in this browser for each organization. The
 * address is the view; the platform has no place for what is one person's alone.
 */
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { Field } from "../../ui/field.tsx";
import { readSearch, type TaskSearch } from "./search.ts";

/** Views of an organization; the oldest make room. */
const MAX_VIEWS = 20;
/** The longest name of a view. */
const MAX_NAME_CHARACTERS = 40;

interface View {
  readonly name: string;
  readonly search: TaskSearch;
}

const keyOf = (organization: string) => `tessera.views.${organization}`;

/** What is stored may be of another version, or broken: that is no view. */
function storedViews(organization: string): readonly View[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(keyOf(organization)) ?? "[]");
    return (Array.isArray(stored) ? stored : []).flatMap((view) =>
      typeof view?.name === "string"
        ? [{ name: view.name, search: readSearch(view.search ?? {}) }]
        : [],
    );
  } catch {
    return [];
  }
}

export function Views({ search }: { readonly search: TaskSearch }) {
  const organization = useOrganization();
  const [views, setViews] = useState(() => storedViews(organization));
  const [isNaming, setNaming] = useState(false);
  const keep = (changed: readonly View[]): void => {
    const kept = changed.slice(-MAX_VIEWS);
    localStorage.setItem(keyOf(organization), JSON.stringify(kept));
    setViews(kept);
  };
  const shown = JSON.stringify(search);
  const current = views.find((view) => JSON.stringify(view.search) === shown);
  const canSave = current === undefined && Object.keys(search).length > 0;
  if (views.length === 0 && !canSave) {
    return null;
  }
  return (
    <section className="views" aria-label="Views">
      {views.map((view) => (
        <Link
          key={view.name}
          className="view"
          to="."
          search={view.search}
          activeOptions={{ exact: true, includeSearch: true }}
          aria-current={view === current ? "page" : undefined}
        >
          {view.name}
        </Link>
      ))}
      {canSave && (
        <Button kind="quiet" onClick={() => setNaming(true)}>
          Save view…
        </Button>
      )}
      {current !== undefined && (
        <Button kind="quiet" onClick={() => keep(views.filter((view) => view !== current))}>
          Delete view
        </Button>
      )}
      {isNaming && (
        <Dialog title="Save this view" onClose={() => setNaming(false)}>
          <form
            onSubmit={(event) => {
              event.preventDefault();
              const name = String(new FormData(event.currentTarget).get("name")).trim();
              if (name !== "") {
                keep([...views.filter((view) => view.name !== name), { name, search }]);
                setNaming(false);
              }
            }}
          >
            <Field
              label="Name"
              hint="Views are kept in this browser. To share one, send its address."
            >
              {(control) => (
                <input
                  {...control}
                  name="name"
                  required
                  maxLength={MAX_NAME_CHARACTERS}
                  data-autofocus
                  autoComplete="off"
                />
              )}
            </Field>
            <div className="dialog-actions">
              <Button onClick={() => setNaming(false)}>Cancel</Button>
              <Button kind="primary" type="submit">
                Save view
              </Button>
            </div>
          </form>
        </Dialog>
      )}
    </section>
  );
}
