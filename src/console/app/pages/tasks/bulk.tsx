/** Cancels and retries the selected tasks, or all that the filter of a list chooses. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
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
import type { TaskFilter } from "../../api/tasks.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { counted } from "../../ui/counted.ts";
import { useToast } from "../../ui/toasts.tsx";
import type { TaskSelection } from "./selection.ts";

const VERBS: readonly BulkVerb[] = ["cancel", "retry"];

const WORDS = {
  cancel: { action: "Cancel", past: "cancelled", dismiss: "Keep them" },
  retry: { action: "Retry", past: "retried", dismiss: "Not now" },
} as const;

interface BulkActionsProps {
  readonly selection: TaskSelection;
  /** Of the list: what "all" means. */
  readonly filter: TaskFilter;
}

export function BulkActions({ selection, filter }: BulkActionsProps) {
  const [asked, setAsked] = useState<{ readonly verb: BulkVerb; readonly all: boolean }>();
  const close = () => setAsked(undefined);
  const { size } = selection;
  return (
    <section className="task-bulk" aria-label="Several tasks">
      <span role="status">{size > 0 && `${counted(size, "task")} selected`}</span>
      {size > 0
        ? VERBS.map((verb) => {
            const { length } = selection.tasks.filter((task) => admits(verb, task));
            return (
              length > 0 && (
                <Button key={verb} onClick={() => setAsked({ verb, all: false })}>
                  {WORDS[verb].action} {length}
                </Button>
              )
            );
          })
        : VERBS.filter((verb) => admitsFilter(verb, filter)).map((verb) => (
            <Button key={verb} onClick={() => setAsked({ verb, all: true })}>
              {WORDS[verb].action} all…
            </Button>
          ))}
      {size > 0 && (
        <Button kind="quiet" onClick={selection.clear}>
          Select none
        </Button>
      )}
      {asked?.all === true && <AskAll verb={asked.verb} filter={filter} onClose={close} />}
      {asked?.all === false && (
        <AskSelected verb={asked.verb} selection={selection} onClose={close} />
      )}
    </section>
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
      <p>{consequence(verb, true)}</p>
    </Confirm>
  );
}

function AskAll({ verb, filter, onClose }: AskProps & { readonly filter: TaskFilter }) {
  const organization = useOrganization();
  const tell = useTell(verb, onClose);
  const runsOnly = filter.status === "TASK_STATUS_RUNNING";
  const [abort, setAbort] = useState(runsOnly);
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
  const failed = verb === "retry" && status === undefined ? " that failed" : "";
  return tasks === 0
    ? `No task${failed} is like this.`
    : `${counted(tasks, "task")}${failed} ${tasks === 1 ? "is" : "are"} like this, of all pages.`;
}

function consequence(verb: BulkVerb, abort: boolean): string {
  if (verb === "retry") {
    return "Each runs again as a new task, with the same arguments.";
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
