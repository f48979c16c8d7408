/** What can be done with a task: cancel it, run it again, delete it. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { tasks } from "../../api/clients.ts";
import { messageOf } from "../../api/errors.ts";
import { fullName, hasEnded, type TaskName, taskOf } from "../../api/tasks.ts";
import { Button } from "../../ui/button.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Menu } from "../../ui/menu.tsx";
import { useToast } from "../../ui/toasts.tsx";

export function TaskActions({ task, name }: { readonly task: TaskJson; readonly name: TaskName }) {
  return (
    <>
      {hasEnded(task) ? (
        <Retry name={name} isFailed={task.status === "TASK_STATUS_FAILURE"} />
      ) : (
        <Cancel task={task} name={name} />
      )}
      {task.status !== "TASK_STATUS_RUNNING" && <Delete name={name} />}
    </>
  );
}

function Delete({ name }: { readonly name: TaskName }) {
  const queryClient = useQueryClient();
  const navigate = useNavigate();
  const toast = useToast();
  const [isAsked, setAsked] = useState(false);
  const { taskId, organization, deployment } = name;
  return (
    <>
      <Menu
        id="task-actions"
        label="More actions for this task"
        items={[{ label: "Delete task", isDangerous: true, run: () => setAsked(true) }]}
      />
      {isAsked && (
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
          onClose={() => setAsked(false)}
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
