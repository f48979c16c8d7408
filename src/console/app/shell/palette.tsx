/** The command palette: pages, deployments, endpoints and actions by name, with the arrow keys. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { useDeferredValue, useEffect, useId, useState } from "react";
import type { TaskJson } from "../../../../gen/tessera/v1/task_pb.js";
import { tasks } from "../api/clients.ts";
import { deploymentsOf } from "../api/deployments.ts";
import { messageOf } from "../api/errors.ts";
import { signOut, useOrganization, usePerson } from "../api/session.ts";
import { hasEnded, tasksHaving } from "../api/tasks.ts";
import { Dialog } from "../ui/dialog.tsx";
import { useToast } from "../ui/toasts.tsx";
import { placesFor } from "./places.ts";
import { applyTheme, THEMES } from "./theme.ts";
import "./palette.css";

/** A part of a task's id that is long enough to mean few. */
const PART_OF_ID = /^[0-9a-f-]{6,36}$/i;

/** Tasks that are found by a part of their id. */
const MAX_FOUND_TASKS = 5;

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
  const { data: deployments = [], isPending } = useQuery(deploymentsOf(organization));
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  /** Enter was pressed before there was anything to open. */
  const [isDue, setDue] = useState(false);
  const list = useId();
  const asked = useDeferredValue(text).trim();
  const { data: found = [] } = useQuery({
    ...tasksHaving(organization, asked.toLowerCase()),
    enabled: PART_OF_ID.test(asked),
  });
  const openTask = useOpenTask();
  const retry = useRetry();
  const { task: taskId, deployment } = useParams({ strict: false });
  const ofTasks = PART_OF_ID.test(asked)
    ? found
        .slice(0, MAX_FOUND_TASKS)
        .flatMap((task): Entry[] => [
          { label: `${task.endpoint} ${task.taskId}`, kind: "task", open: () => openTask(task) },
          ...(hasEnded(task)
            ? [{ label: `Retry ${task.taskId}`, kind: "action", open: () => void retry(task) }]
            : []),
        ])
    : [];
  const places = placesFor(who).map(
    ({ label, to }): Entry => ({
      label,
      kind: "page",
      open: () => void navigate({ to, params: { organization } }),
    }),
  );
  const entries = [
    ...ofTasks,
    ...(taskId === undefined || deployment === undefined
      ? []
      : [
          {
            label: "Retry this task",
            kind: "action",
            open: () => void retry({ deployment: `${organization}/${deployment}`, taskId }),
          },
        ]),
    ...places,
    {
      label: "Create token",
      kind: "action",
      open: () =>
        void navigate({
          to: "/o/$organization/tokens",
          params: { organization },
          search: { create: true },
        }),
    },
    {
      label: "Deploy a service",
      kind: "action",
      open: () => location.assign("/docs/deploy.html"),
    },
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
  const words = text.trim().toLowerCase().split(/\s+/);
  const shown = entries
    .filter(({ label, kind }) =>
      words.every((word) => `${label} ${kind}`.toLowerCase().includes(word)),
    )
    .slice(0, MAX_FOUND);
  const chosen = Math.min(at, shown.length - 1);
  const open = (entry: Entry | undefined): void => {
    if (entry === undefined) {
      setDue(isPending);
    } else {
      onClose();
      entry.open();
    }
  };
  useEffect(() => {
    if (isDue && !isPending) {
      open(shown[chosen]);
    }
  });
  return (
    <Dialog label="Search or go to" className="palette" onClose={onClose}>
      <input
        type="search"
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={shown.length > 0 ? `${list}-${chosen}` : undefined}
        aria-label="Search pages, endpoints, tasks and actions"
        placeholder="Search pages, endpoints, tasks and actions"
        data-autofocus
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
          setDue(false);
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (step !== undefined) {
            event.preventDefault();
            setAt((chosen + step + shown.length) % Math.max(shown.length, 1));
          } else if (event.key === "Enter") {
            event.preventDefault();
            open(shown[chosen]);
          } else if (event.key === "Escape") {
            // By itself a field of this type is emptied first.
            event.preventDefault();
            onClose();
          }
        }}
      />
      <div role="listbox" id={list} aria-label="Found">
        {shown.map((entry, index) => (
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
      {shown.length === 0 && !isPending && <p className="palette-none">Nothing has this name.</p>}
    </Dialog>
  );
}

function useOpenTask() {
  const navigate = useNavigate();
  const organization = useOrganization();
  return ({ deployment = "", taskId = "" }: TaskJson): void =>
    void navigate({
      to: "/o/$organization/deployments/$deployment/tasks/$task",
      params: { organization, deployment: deployment.split("/")[1] ?? "", task: taskId },
    });
}

/** Retries a task and opens the new one. */
function useRetry() {
  const openTask = useOpenTask();
  const toast = useToast();
  return async ({ deployment = "", taskId = "" }: TaskJson): Promise<void> => {
    try {
      openTask(await tasks.retryTask({ deployment, taskId, idempotencyKey: crypto.randomUUID() }));
    } catch (err) {
      toast(messageOf(err));
    }
  };
}
