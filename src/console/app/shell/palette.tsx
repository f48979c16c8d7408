/** The command palette: pages, deployments, endpoints and actions by name, with the arrow keys. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useId, useState } from "react";
import { deploymentsOf } from "../api/deployments.ts";
import { signOut, useOrganization, usePerson } from "../api/session.ts";
import { Dialog } from "../ui/dialog.tsx";
import { placesFor } from "./places.ts";
import { applyTheme, THEMES } from "./theme.ts";
import "./palette.css";

/** What is shown at once: more words narrow it. */
const MAX_FOUND = 12;

interface Entry {
  readonly label: string;
  readonly kind: string;
  open(): void;
}

export default function Palette({ onClose }: { onClose(): void }) {
  const navigate = useNavigate();
  const organization = useOrganization();
  const who = usePerson();
  const { data: deployments = [] } = useQuery(deploymentsOf(organization));
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useId();
  const places = placesFor(who).map(
    ({ label, to }): Entry => ({
      label,
      kind: "page",
      open: () => void navigate({ to, params: { organization } }),
    }),
  );
  const entries = [
    ...places,
    ...deployments.map(
      ({ name = "" }): Entry => ({
        label: name,
        kind: "deployment",
        open: () =>
          void navigate({
            to: "/o/$organization/deployments/$deployment",
            params: { organization, deployment: name },
          }),
      }),
    ),
    ...deployments.flatMap(({ name = "", endpoints = [] }) =>
      endpoints.map(
        (endpoint): Entry => ({
          label: `${name}/${endpoint.name}`,
          kind: "endpoint",
          open: () =>
            void navigate({
              to: "/o/$organization/deployments/$deployment/playground",
              params: { organization, deployment: name },
              hash: `/${endpoint.name}`,
            }),
        }),
      ),
    ),
    ...deployments.map(
      ({ name = "" }): Entry => ({
        label: `Settings of ${name}`,
        kind: "page",
        open: () =>
          void navigate({
            to: "/o/$organization/deployments/$deployment/settings",
            params: { organization, deployment: name },
          }),
      }),
    ),
    { label: "Account", kind: "page", open: () => void navigate({ to: "/account" }) },
    { label: "API reference", kind: "page", open: () => void navigate({ to: "/reference" }) },
    { label: "Documentation", kind: "page", open: () => location.assign("/docs/") },
    ...THEMES.map(
      (theme): Entry => ({
        label: `Theme: ${theme}`,
        kind: "action",
        open: () => applyTheme(theme),
      }),
    ),
    { label: "Sign out", kind: "action", open: () => void signOut() },
  ];
  const words = useDeferredValue(text).toLowerCase().split(/\s+/);
  const found = entries
    .filter(({ label, kind }) =>
      words.every((word) => `${label} ${kind}`.toLowerCase().includes(word)),
    )
    .slice(0, MAX_FOUND);
  const chosen = Math.min(at, found.length - 1);
  const open = (entry: Entry | undefined): void => {
    onClose();
    entry?.open();
  };
  return (
    <Dialog label="Search or go to" className="palette" onClose={onClose}>
      <input
        type="search"
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={found.length > 0 ? `${list}-${chosen}` : undefined}
        aria-label="Search pages, endpoints and actions"
        placeholder="Search pages, endpoints and actions"
        data-autofocus
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined) {
            event.preventDefault();
            setAt((chosen + step + found.length) % Math.max(found.length, 1));
          } else if (event.key === "Enter") {
            event.preventDefault();
            open(found[chosen]);
          }
        }}
      />
      <div role="listbox" id={list} aria-label="Found">
        {found.map((entry, index) => (
          <div
            key={`${entry.kind} ${entry.label}`}
            id={`${list}-${index}`}
            role="option"
            aria-selected={index === chosen}
            tabIndex={-1}
            onPointerMove={() => setAt(index)}
            onClick={() => open(entry)}
            onKeyDown={(event) => event.key === "Enter" && open(entry)}
          >
            <span className="palette-label">{entry.label}</span>
            <span className="palette-kind">{entry.kind}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p className="palette-none">Nothing has this name.</p>}
    </Dialog>
  );
}
