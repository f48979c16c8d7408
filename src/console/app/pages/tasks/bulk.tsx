/** Cancels, retries and deletes the selected tasks, or all that the filter of a list chooses. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import type {
  CountTasksResponseJson,
  StateCountJson,
} from "../../../../../gen/tessera/v1/organization_task_pb.js";
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import {
  admits,
  admitsFilter,
  type BulkOutcome,
  type BulkVerb,
  changeChosen,
  changeSelected,
  count,
} from "../../api/bulk.ts";
import { messageOf } from "../../api/errors.ts";
import { useOrganization } from "../../api/session.ts";
import { countsOf, type TaskFilter } from "../../api/tasks.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { counted } from "../../ui/counted.ts";
import { Menu } from "../../ui/menu.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { previewOf } from "./arguments-preview.ts";
import type { TaskSelection } from "./selection.ts";
import { SCHEDULED, type ShownState, STATES } from "./state.tsx";

/** Tasks that are named before something is done with them. */
const MAX_NAMED_TASKS = 5;

const VERBS: readonly BulkVerb[] = ["cancel", "retry", "delete"];

const WORDS = {
  cancel: { action: "Cancel", past: "cancelled", dismiss: "Keep them" },
  retry: { action: "Retry", past: "retried", dismiss: "Not now" },
  delete: { action: "Delete", past: "deleted", dismiss: "Keep them" },
} as const;

/** A menu of what can be done with all tasks that the filter of a list chooses. */
export function AllActions({ filter }: { readonly filter: TaskFilter }) {
  const [asked, setAsked] = useState<BulkVerb>();
  const { data: counts } = useQuery(countsOf(useOrganization(), filter));
  const items = VERBS.filter((verb) => admitsFilter(verb, filter)).map((verb) => {
    const { total, isPartial } = totalIn(counts, statesFor(verb, filter));
    const many = isPartial ? `${total.toLocaleString("en")}+` : total.toLocaleString("en");
    const kind = verb === "retry" && filter.status === undefined ? "failed task" : "task";
    return {
      label: `${WORDS[verb].action} ${many} ${kind}${total === 1 ? "" : "s"}…`,
      isDisabled: total === 0,
      isDangerous: verb === "delete",
      run: () => setAsked(verb),
    };
  });
  return (
    <>
      <Menu id="all-tasks" label="All tasks of this list" items={items} />
      {asked !== undefined && (
        <AskAll
          verb={asked}
          filter={filter}
          // Where none waits, those that run are meant.
          ofRunning={totalIn(counts, ["queued", SCHEDULED]).total === 0}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

/** The states of tasks that a verb changes, of those that the filter chooses. */
function statesFor(verb: BulkVerb, { status, scheduled }: TaskFilter): readonly string[] {
  if (status !== undefined) {
    return [scheduled === true ? SCHEDULED : STATES[status as ShownState][1]];
  }
  switch (verb) {
    case "cancel":
      return [SCHEDULED, "queued", "running"];
    case "retry":
      return ["failure"];
    case "delete":
      return [SCHEDULED, "queued", "success", "failure", "cancelled"];
  }
}

function totalIn(counts: CountTasksResponseJson | undefined, states: readonly string[]) {
  const all = states.map((state): StateCountJson => {
    const found = counts?.[state as keyof CountTasksResponseJson];
    return typeof found === "object" ? (found as StateCountJson) : {};
  });
  return {
    total: all.reduce((sum, { count = 0 }) => sum + count, 0),
    isPartial: all.some(({ isPartial }) => isPartial),
  };
}

/** What can be done with the selected tasks; nothing while there are none. */
export function SelectionActions({ selection }: { readonly selection: TaskSelection }) {
  const [asked, setAsked] = useState<BulkVerb>();
  const { size } = selection;
  return (
    <>
      <span role="status" className="hidden">
        {size > 0 && `${counted(size, "task")} selected`}
      </span>
      {size > 0 && (
        <section className="task-bulk" aria-label="Several tasks">
          <span aria-hidden="true">{size} selected</span>
          {VERBS.map((verb) => {
            const { length } = selection.tasks.filter((task) => admits(verb, task));
            return (
              length > 0 && (
                <Button key={verb} onClick={() => setAsked(verb)}>
                  {WORDS[verb].action} {length}
                </Button>
              )
            );
          })}
          <Button kind="quiet" onClick={selection.clear}>
            Select none
          </Button>
        </section>
      )}
      {asked !== undefined && (
        <AskSelected verb={asked} selection={selection} onClose={() => setAsked(undefined)} />
      )}
    </>
  );
}

interface AskProps {
  readonly verb: BulkVerb;
  onClose(): void;
}

function AskSelected({
  verb,
  selection,
  onClose,
}: AskProps & { readonly selection: TaskSelection }) {
  const tell = useTell(verb, onClose);
  // What was asked about: the list goes on changing behind the dialog.
  const [tasks] = useState(selection.tasks.filter((task) => admits(verb, task)));
  const { action } = WORDS[verb];
  return (
    <Confirm
      title={`${action} ${counted(tasks.length, "task")}?`}
      action={`${action} ${counted(tasks.length, "task")}`}
      dismiss={WORDS[verb].dismiss}
      run={async () => tell(await changeSelected(verb, tasks))}
      onDone={selection.clear}
      onClose={onClose}
    >
      <Named tasks={tasks} />
      <p>{consequence(verb, true)}</p>
    </Confirm>
  );
}

/** The first of the tasks that somebody is asked about, each in a line: their endpoint, and what it was called with. */
function Named({ tasks }: { readonly tasks: readonly TaskJson[] }) {
  return (
    <ul className="bulk-tasks">
      {tasks.slice(0, MAX_NAMED_TASKS).map(({ taskId, endpoint, argumentsPreview = "" }) => (
        <li key={taskId}>
          {endpoint} <span className="secondary">{previewOf(argumentsPreview)}</span>
        </li>
      ))}
      {tasks.length > MAX_NAMED_TASKS && (
        <li className="secondary">and {tasks.length - MAX_NAMED_TASKS} more</li>
      )}
    </ul>
  );
}

interface AskAllProps extends AskProps {
  readonly filter: TaskFilter;
  /** Begins with tasks that run as well. */
  readonly ofRunning: boolean;
}

function AskAll({ verb, filter, ofRunning, onClose }: AskAllProps) {
  const organization = useOrganization();
  const tell = useTell(verb, onClose);
  const [abort, setAbort] = useState(ofRunning);
  const chosen = { organization, filter, abort };
  const counting = useQuery({
    queryKey: ["bulk", verb, organization, filter, abort],
    queryFn: () => count(verb, chosen),
    gcTime: 0,
  });
  const { action } = WORDS[verb];
  const what = counting.data === undefined ? "all" : counted(counting.data, "task");
  return (
    <Confirm
      title={`${action} ${what}?`}
      action={`${action} ${what}`}
      dismiss={WORDS[verb].dismiss}
      run={async () => tell(await changeChosen(verb, chosen))}
      onDone={() => undefined}
      onClose={onClose}
    >
      <p aria-live="polite">
        {counting.error === null
          ? (amount(verb, counting.data, filter) ?? "Counting…")
          : messageOf(counting.error)}
      </p>
      <p>{consequence(verb, abort)}</p>
      {verb === "cancel" && filter.status === undefined && (
        <label className="choice">
          <input
            type="checkbox"
            checked={abort}
            onChange={({ target }) => setAbort(target.checked)}
          />
          <span>Also tasks that run</span>
        </label>
      )}
    </Confirm>
  );
}

function amount(verb: BulkVerb, tasks: number | undefined, { status }: TaskFilter) {
  if (tasks === undefined) {
    return undefined;
  }
  const noun = verb === "retry" && status === undefined ? "failed task" : "task";
  return tasks === 0
    ? `No ${noun}s match.`
    : `${counted(tasks, noun)} ${tasks === 1 ? "matches" : "match"}, on all pages.`;
}

function consequence(verb: BulkVerb, abort: boolean): string {
  if (verb === "retry") {
    return "Each runs again as a new task, with the same arguments.";
  }
  if (verb === "delete") {
    return "Their arguments, results and logs are gone, and nothing brings them back. Tasks that wait never start.";
  }
  const waiting = "Tasks that wait never start; they can be retried later.";
  return abort
    ? `${waiting} The functions of those that run are asked to stop, and their workers are ended if they do not.`
    : waiting;
}

/** Says what became of the tasks, and reads the lists again. */
function useTell(verb: BulkVerb, onClose: () => void) {
  const organization = useOrganization();
  const queryClient = useQueryClient();
  const toast = useToast();
  return ({ changed, skipped, why }: BulkOutcome): void => {
    const done = `${counted(changed, "task")} ${WORDS[verb].past}`;
    toast(skipped === 0 ? done : `${done}, ${skipped} skipped: ${why}`);
    void queryClient.invalidateQueries({ queryKey: ["tasks", organization] });
    onClose();
  };
}
