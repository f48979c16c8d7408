/** What can be done with a task: cancel it, run it again, change its start, delete it. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { tasks } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { fullName, hasEnded, type TaskName, taskOf } from "../../api/tasks.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { FieldsForm, textOf } from "../../ui/fields-form.tsx";
import { Menu } from "../../ui/menu.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { tagsIn } from "./search.ts";

export function TaskActions({ task, name }: { readonly task: TaskJson; readonly name: TaskName }) {
  return (
    <>
      {hasEnded(task) ? (
        <Retry name={name} isFailed={task.status === "TASK_STATUS_FAILURE"} />
      ) : (
        <Cancel task={task} name={name} />
      )}
      {task.status !== "TASK_STATUS_RUNNING" && <More task={task} name={name} />}
    </>
  );
}

/** A time as its input has it, in the zone of the browser. */
function localText(at: string | undefined): string {
  const date = new Date(at ?? Number.NaN);
  const localMs = date.getTime() - date.getTimezoneOffset() * 60_000;
  return Number.isNaN(localMs) ? "" : new Date(localMs).toISOString().slice(0, 16);
}

/** The time of such a text; undefined for none. */
const timeOf = (text: string) => (text === "" ? undefined : new Date(text).toISOString());

interface ChangeProps {
  readonly task: TaskJson;
  readonly name: TaskName;
  onClose(): void;
}

/** Changes when a task starts that waits, and its tags. */
function Change({ task, name, onClose }: ChangeProps) {
  const queryClient = useQueryClient();
  const toast = useToast();
  const before = {
    priority: String(task.priority ?? 0),
    runAt: localText(task.runAt),
    startBy: localText(task.startBy),
    tags: (task.tags ?? []).join(", "),
  };
  const all = { autoComplete: "off", optional: true } as const;
  return (
    <Dialog title="Change this task" onClose={onClose}>
      <FieldsForm
        fields={[
          {
            ...all,
            name: "priority",
            type: "number",
            label: "Priority",
            hint: "From -100 to 100. Higher ones start first.",
            defaultValue: before.priority,
          },
          {
            ...all,
            name: "run_at",
            type: "datetime-local",
            label: "Not before",
            hint: "Empty: as soon as a worker is free.",
            defaultValue: before.runAt,
          },
          {
            ...all,
            name: "start_by",
            type: "datetime-local",
            label: "Not after",
            hint: "It fails if it has not started by then.",
            defaultValue: before.startBy,
          },
          {
            ...all,
            name: "tags",
            label: "Tags",
            hint: "With commas between, such as customer:42, nightly.",
            defaultValue: before.tags,
          },
        ]}
        submit="Change"
        needsChange
        send={(values) => {
          const priority = textOf(values, "priority");
          const runAt = textOf(values, "run_at");
          const startBy = textOf(values, "start_by");
          const tags = textOf(values, "tags");
          // What is empty is named in the mask alone, which ends it.
          const changed = {
            ...(priority !== before.priority && { priority: Number(priority) }),
            ...(runAt !== before.runAt && { runAt: timeOf(runAt) }),
            ...(startBy !== before.startBy && { startBy: timeOf(startBy) }),
            ...(tags !== before.tags && { tags: tagsIn(tags) }),
          };
          const updateMask = Object.keys(changed).join();
          const { taskId } = name;
          return tasks.updateTask({ deployment: fullName(name), taskId, updateMask, ...changed });
        }}
        onDone={() => {
          void queryClient.invalidateQueries({ queryKey: taskOf(name).queryKey });
          toast("The task is changed");
          onClose();
        }}
      />
    </Dialog>
  );
}

function More({ task, name }: { readonly task: TaskJson; readonly name: TaskName }) {
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const toast = useToast();
  const [asked, setAsked] = useState<"change" | "delete">();
  const { taskId, organization, deployment } = name;
  const close = () => setAsked(undefined);
  return (
    <>
      <Menu
        id="task-actions"
        label="More actions for this task"
        items={[
          ...(hasEnded(task)
            ? []
            : [{ label: "Change its start or tags…", run: () => setAsked("change") }]),
          { label: "Delete task", isDangerous: true, run: () => setAsked("delete") },
        ]}
      />
      {asked === "change" && <Change task={task} name={name} onClose={close} />}
      {asked === "delete" && (
        <Confirm
          title="Delete this task?"
          action="Delete task"
          dismiss="Keep it"
          run={() => tasks.deleteTask({ deployment: fullName(name), taskId })}
          onDone={() => {
            toast("The task is deleted");
            void queryClient.invalidateQueries({ queryKey: ["tasks", organization] });
            queryClient.removeQueries({ queryKey: taskOf(name).queryKey });
            void navigate({
              to: "/o/$organization/deployments/$deployment/tasks",
              params: { organization, deployment },
            });
          }}
          onClose={close}
        >
          <p>
            Its arguments, its result, its log and messages to webhooks about it are gone, and
            nothing brings them back. What retries it stays.
          </p>
        </Confirm>
      )}
    </>
  );
}

interface RetryProps {
  readonly name: TaskName;
  /** What most people are here for. */
  readonly isFailed: boolean;
}

function Retry({ name, isFailed }: RetryProps) {
  const navigate = useNavigate();
  const toast = useToast();
  const { taskId, ...params } = name;
  const retrying = useMutation({
    // The key makes a second click lead to the same task.
    mutationFn: () =>
      tasks.retryTask({ deployment: fullName(name), taskId, idempotencyKey: `retry-${taskId}` }),
    onSuccess: ({ taskId: task = "" }) => {
      toast("It runs again as a new task");
      void navigate({
        to: "/o/$organization/deployments/$deployment/tasks/$task",
        params: { ...params, task },
      });
    },
    onError: (err) => toast(messageOf(err)),
  });
  return (
    <Button
      {...(isFailed && { kind: "primary" as const })}
      isBusy={retrying.isPending}
      onClick={() => retrying.mutate()}
    >
      Retry
    </Button>
  );
}

function Cancel({ task, name }: { readonly task: TaskJson; readonly name: TaskName }) {
  const queryClient = useQueryClient();
  const toast = useToast();
  const [isAsked, setAsked] = useState(false);
  const isRunning = task.status === "TASK_STATUS_RUNNING";
  return (
    <>
      <Button onClick={() => setAsked(true)}>Cancel task</Button>
      {isAsked && (
        <Confirm
          title="Cancel this task?"
          action="Cancel task"
          dismiss="Keep it"
          run={() =>
            tasks.cancelTask({ deployment: fullName(name), taskId: name.taskId, abort: true })
          }
          onDone={() => {
            void queryClient.invalidateQueries({ queryKey: taskOf(name).queryKey });
            toast("The task is cancelled");
            setAsked(false);
          }}
          onClose={() => setAsked(false)}
        >
          <p>
            {isRunning
              ? "It runs: its function is asked to stop, and its worker is ended if it does not."
              : "It has not started, and never will. It can be retried later."}
          </p>
        </Confirm>
      )}
    </>
  );
}
