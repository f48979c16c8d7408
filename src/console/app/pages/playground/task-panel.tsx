/** A task of the endpoint, live: its states, progress and log, then its result. */
import { useMutation, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import type { TaskEventJson, TaskStatusJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { CallError } from "../../api/errors.ts";
import { loadedFrom } from "../../api/results.ts";
import { eventsOf } from "../../api/server-events.ts";
import type { StreamOptions } from "../../api/stream.ts";
import { hasEnded } from "../../api/tasks.ts";
import { Button } from "../../ui/button.tsx";
import { CopyChip } from "../../ui/copy-button.tsx";
import { between } from "../../ui/duration.ts";
import { Loading } from "../../ui/loading.tsx";
import { momentText } from "../../ui/time.tsx";
import { secondText } from "../../ui/time-range.ts";
import { Content } from "../tasks/content.tsx";
import { TaskLog } from "../tasks/log.tsx";
import { Progress } from "../tasks/progress.tsx";
import { TaskStatus } from "../tasks/state.tsx";
import { useTaskEvents } from "../tasks/use-task-events.ts";
import { CallFailure } from "./call-failure.tsx";
import { type PlaygroundEndpoint, pathOf } from "./description.ts";
import type { LinkedTarget } from "./linked-target.ts";
import { OutputHead } from "./output-head.tsx";
import { forgetTask, hashOf, rememberTask } from "./recent.tsx";
import type { PlaygroundTarget } from "./target.ts";

interface TaskPanelProps {
  readonly target: LinkedTarget;
  readonly endpoint: PlaygroundEndpoint;
  readonly taskId: string;
}

export function TaskPanel(props: TaskPanelProps) {
  const { target, endpoint, taskId } = props;
  const { task, events, status, result } = useTask(props);
  const { changes, progress, lines, state } = events;
  const acting = useActing(props, status);
  const [first, last] = [changes[0]?.time, changes.at(-1)?.time];
  return (
    <div className="task-panel">
      <OutputHead
        state={changes.length > 0 && <TaskStatus status={status} />}
        took={hasEnded({ status }) && first && last && `in ${between(first, last, Date.now())}`}
      >
        {changes.length > 0 && <Action of={acting} status={status} />}
      </OutputHead>
      <p className="task-name">
        <CopyChip text={taskId} shown={taskId.slice(-12)} what="task id" />
        {target.taskLink?.(taskId)}
        {task.data && <Facts endpoint={endpoint} task={task.data} />}
      </p>
      <Timeline changes={changes} />
      <div hidden={progress === undefined || status === "TASK_STATUS_SUCCESS"}>
        <Progress progress={progress} />
      </div>
      {acting.error && <CallFailure error={acting.error} />}
      {task.error && <CallFailure error={task.error} />}
      <p className="hint" role="status">
        {state.kind === "reconnecting" && "Connection lost, trying again…"}
        {state.kind === "failed" && state.message}
      </p>
      {status === "TASK_STATUS_CANCELLED" && <p>Cancelled: there is no result.</p>}
      {result.isFetching && <Loading />}
      {result.error && <CallFailure error={result.error} />}
      {result.data?.blob && (
        <Content blob={result.data.blob} label="Result" filename={result.data.filename || taskId} />
      )}
      {lines.length > 0 && <TaskLog events={events} />}
    </div>
  );
}

/** The path of a verb of the task. */
const pathTo = (
  { endpoint, taskId }: TaskPanelProps,
  verb: string,
  more?: Readonly<Record<string, string>>,
): string => `${pathOf(endpoint, verb)}?${new URLSearchParams({ task_id: taskId, ...more })}`;

/** The task, its events as they come, and its result when it has ended. */
function useTask(props: TaskPanelProps) {
  const { target, endpoint, taskId } = props;
  const task = useQuery({
    queryKey: ["playground-task", target.name, taskId],
    queryFn: async ({ signal }): Promise<ShownTask> =>
      (await target.send(pathTo(props, "status"), { signal })).json(),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const isGone = task.error instanceof CallError && task.error.status === 404;
  useEffect(() => {
    if (isGone) {
      forgetTask(target.name, taskId);
    }
  }, [isGone, target.name, taskId]);
  const events = useTaskEvents(
    task.data && `${target.name}/${taskId}`,
    ({ afterSequence }, options) =>
      taskEvents(target, pathTo(props, "events"), afterSequence, options),
    (changes) =>
      rememberTask(target.name, {
        endpoint: endpoint.name,
        id: taskId,
        status: statusOf(changes),
        createdAt: task.data?.created_at ?? "",
      }),
  );
  const status = statusOf(events.changes);
  const result = useQuery({
    queryKey: ["playground-result", target.name, taskId],
    queryFn: async ({ signal }) =>
      loadedFrom(
        await target.send(pathTo(props, "get"), { signal }),
        () => Number.POSITIVE_INFINITY,
      ),
    enabled: hasEnded({ status }) && status !== "TASK_STATUS_CANCELLED",
    staleTime: Number.POSITIVE_INFINITY,
  });
  return { task, events, status, result };
}

/** Cancels it, or runs it again as a new task. */
function useActing(props: TaskPanelProps, status: TaskStatusJson) {
  const { target, endpoint } = props;
  return useMutation({
    mutationFn: async (verb: "cancel" | "retry") => {
      if (verb === "cancel") {
        const abort = status === "TASK_STATUS_RUNNING" ? { abort: "true" } : undefined;
        await target.send(pathTo(props, verb, abort), { method: "POST" });
        return;
      }
      // A browser may repeat the request by itself when a connection breaks.
      const key = String(crypto.getRandomValues(new BigUint64Array(2)));
      const init = { method: "PUT", headers: { "idempotency-key": key } };
      const { task_id: id } = await (await target.send(pathTo(props, verb), init)).json();
      location.hash = hashOf(endpoint.name, id);
    },
  });
}

interface ActionProps {
  readonly of: ReturnType<typeof useActing>;
  readonly status: TaskStatusJson;
}

/** What can be done with it in its state. */
function Action({ of: { isPending, mutate }, status }: ActionProps) {
  return hasEnded({ status }) ? (
    <Button isBusy={isPending} onClick={() => mutate("retry")}>
      Retry
    </Button>
  ) : (
    <Button kind="danger" isBusy={isPending} onClick={() => mutate("cancel")}>
      {status === "TASK_STATUS_RUNNING" ? "Abort" : "Cancel"}
    </Button>
  );
}

/** What is shown of the answer to `/{endpoint}/status`. */
interface ShownTask {
  readonly created_at?: string;
  readonly expires_at?: string;
  readonly retry_of?: string | null;
}

interface FactsProps {
  readonly endpoint: PlaygroundEndpoint;
  readonly task: ShownTask;
}

function Facts({ endpoint, task: { expires_at: expiresAt, retry_of: retryOf } }: FactsProps) {
  return (
    <span className="hint">
      {expiresAt && `Kept until ${momentText(Date.parse(expiresAt))}. `}
      {retryOf && (
        <>
          A retry of <a href={hashOf(endpoint.name, retryOf)}>an earlier task</a>.
        </>
      )}
    </span>
  );
}

const statusOf = (changes: readonly TaskEventJson[]): TaskStatusJson =>
  changes.at(-1)?.state?.status ?? "TASK_STATUS_UNSPECIFIED";

/** The states that it has been in, with how long each took; when it came into the last one. */
function Timeline({ changes }: { readonly changes: readonly TaskEventJson[] }) {
  return (
    <>
      <ol className="timeline">
        {changes.map(({ sequence, state, time = "", attempt = 0 }, index) => {
          const next = changes[index + 1]?.time;
          const isAgain = state?.status === "TASK_STATUS_RUNNING" && attempt > 1;
          return (
            <li key={sequence} className={next === undefined ? "now" : ""}>
              <TaskStatus status={state?.status} />
              {isAgain && <span>(attempt {attempt})</span>}
              <time className="hint" dateTime={time}>
                {next === undefined
                  ? secondText(Date.parse(time))
                  : between(time, next, Date.now())}
              </time>
            </li>
          );
        })}
      </ol>
      <p className="hidden" role="status">
        {changes.length > 0 && `The task is in state ${wordOf(statusOf(changes))}.`}
      </p>
    </>
  );
}

const wordOf = (status: TaskStatusJson): string =>
  status.slice("TASK_STATUS_".length).toLowerCase();

/** The events of a task behind one that is known, as those of the API. */
async function* taskEvents(
  target: PlaygroundTarget,
  path: string,
  afterSequence: string,
  { signal, onOpen }: StreamOptions,
): AsyncGenerator<TaskEventJson, void, undefined> {
  const headers = {
    accept: "text/event-stream",
    ...(afterSequence !== "0" && { "last-event-id": afterSequence }),
  };
  const response = await target.send(path, { signal, headers });
  onOpen();
  for await (const { id = "", event, data } of eventsOf(response, signal)) {
    if (event === "end") {
      return;
    }
    const { state, ...rest } = JSON.parse(data);
    const status = `TASK_STATUS_${state?.status.toUpperCase()}`;
    yield { ...rest, sequence: id, ...(state && { state: { ...state, status } }) };
  }
}
