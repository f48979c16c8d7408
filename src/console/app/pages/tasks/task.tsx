/** One task: its state, its attempts, its result and its log, live. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { getRouteApi, Link } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import type { TaskJson, TaskService } from "../../../../../gen/tessera/v1/task_pb.js";
import { messageOf } from "../../api/errors.ts";
import { resultOf, wholeOf } from "../../api/results.ts";
import { useOrganization } from "../../api/session.ts";
import { watch } from "../../api/stream.ts";
import { fullName, hasEnded, type TaskName, taskOf } from "../../api/tasks.ts";
import { usePresent } from "../../api/use-present.ts";
import { CopyChip } from "../../ui/copy-button.tsx";
import { counted } from "../../ui/counted.ts";
import { between } from "../../ui/duration.ts";
import { Loading } from "../../ui/loading.tsx";
import { Notice } from "../../ui/notice.tsx";
import { Page } from "../../ui/page.tsx";
import { DueTime, ExactTime, Time } from "../../ui/time.tsx";
import { useFollowing } from "../../ui/use-following.ts";
import { TaskActions } from "./actions.tsx";
import { Arguments, ArgumentsLine, CopyAsCurl } from "./arguments.tsx";
import { Attempt } from "./attempt.tsx";
import { Content, extensionOf } from "./content.tsx";
import { reasonOf } from "./failure-text.ts";
import { lastList } from "./last-list.ts";
import { Progress } from "./progress.tsx";
import { Raw } from "./raw.tsx";
import { AlikeFailures, OfKey, OfSchedule, Retries, Tags, Told } from "./related.tsx";
import { ListedStatus, whyQueued } from "./state.tsx";
import type { TaskPieces } from "./task-pieces.ts";
import { Timing } from "./timing.tsx";
import { useTaskEvents } from "./use-task-events.ts";
import { Waterfall } from "./waterfall.tsx";
import "./tasks.css";

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/tasks/$task");

export function Task() {
  const organization = useOrganization();
  const { deployment, task: taskId } = route.useParams();
  // Another task is another page: nothing of this one stays.
  return <TaskView key={taskId} name={{ organization, deployment, taskId }} />;
}

function TaskView({ name }: { readonly name: TaskName }) {
  const task = usePresent(taskOf(name));
  // Until somebody chooses one, the last is shown, whichever that is.
  const [chosen, setChosen] = useState<number>();
  const { attempts = [] } = task;
  const attempt = attempts.find(({ number }) => number === chosen) ?? attempts.at(-1);
  const queryClient = useQueryClient();
  const events = useTaskEvents(
    `${fullName(name)}/${name.taskId}`,
    (last, options) =>
      watch<typeof TaskService.method.watchTask>(
        "/tessera.v1.TaskService/WatchTask",
        { deployment: fullName(name), taskId: name.taskId, ...last },
        options,
      ),
    () => {
      const { queryKey } = taskOf(name);
      const known = queryClient.getQueryData(queryKey);
      // The stream begins with what has happened already: a task that was read as ended does not change.
      if (known === undefined || !hasEnded(known)) {
        void queryClient.invalidateQueries({ queryKey });
      }
    },
  );
  const isSuccess = task.status === "TASK_STATUS_SUCCESS";
  // What somebody comes for is first: the result, or why there is none.
  const given = (
    <div className="given-and-got">
      <Arguments name={name} endpoint={task.endpoint ?? ""} />
      {isSuccess && <Result name={name} endpoint={task.endpoint ?? ""} />}
      {!isSuccess && events.pieces.count > 0 && <Pieces pieces={events.pieces} />}
    </div>
  );
  return (
    <Page
      title={`Task of ${task.endpoint}`}
      crumbs={<Crumbs name={name} />}
      description={<About task={task} name={name} />}
      actions={
        <>
          <CopyAsCurl name={name} endpoint={task.endpoint ?? ""} />
          <Raw name={name} />
          <TaskActions task={task} name={name} />
        </>
      }
    >
      <Timing task={task} />
      <Links task={task} name={name} />
      {task.status === "TASK_STATUS_RUNNING" && (
        <Progress progress={events.progress ?? task.progress} />
      )}
      {attempt !== undefined && whyQueued(task) !== "" && (
        <Notice>Its next attempt is queued. {whyQueued(task)}</Notice>
      )}
      {task.failure !== undefined && attempt?.failure === undefined && (
        <Notice kind="error">
          {[`It failed (${reasonOf(task.failure.reason)})`, task.failure.message]
            .filter(Boolean)
            .join(": ")}
          <AlikeFailures name={name} task={task} />
        </Notice>
      )}
      {isSuccess && given}
      <div className="run">
        {attempts.length > 1 && (
          <Waterfall task={task} chosen={attempt?.number} onChoose={setChosen} />
        )}
        {attempt === undefined ? (
          <Waiting task={task} />
        ) : (
          <Attempt key={attempt.number} attempt={attempt} task={task} name={name} events={events} />
        )}
      </div>
      {!isSuccess && given}
      <Facts task={task} />
    </Page>
  );
}

/** The way here: the list that somebody came from, as it was, and the deployment. */
function Crumbs({ name: { organization, deployment } }: { readonly name: TaskName }) {
  const [list] = useState(() => lastList(organization, deployment));
  const words = Object.values(list.search).join(", ");
  const title = words === "" ? "Tasks" : `Tasks: ${words}`;
  const ofDeployment = (
    <Link to="/o/$organization/deployments/$deployment" params={{ organization, deployment }}>
      {deployment}
    </Link>
  );
  return list.deployment === undefined ? (
    <>
      <Link to="/o/$organization/tasks" params={{ organization }} search={list.search}>
        {title}
      </Link>
      {ofDeployment}
    </>
  ) : (
    <>
      {ofDeployment}
      <Link
        to="/o/$organization/deployments/$deployment/tasks"
        params={{ organization, deployment }}
        search={list.search}
      >
        {title}
      </Link>
    </>
  );
}

/** How far the task has come, in a line, and what it was called with, in another. */
function About({ task, name }: { readonly task: TaskJson; readonly name: TaskName }) {
  const { createdAt = "", finishedAt, attempt = 0 } = task;
  return (
    <span className="task-about">
      <ListedStatus task={task} />
      {attempt > 0 && <span>{counted(attempt, "attempt")}</span>}
      {finishedAt !== undefined && <span>took {between(createdAt, finishedAt, 0)}</span>}
      <span>
        submitted <Time at={createdAt} />
      </span>
      <ArgumentsLine name={name} endpoint={task.endpoint ?? ""} />
    </span>
  );
}

/** Its id, and what it is related to. */
function Links({ task, name }: { readonly task: TaskJson; readonly name: TaskName }) {
  return (
    <div className={`task-about task-links ${task.failure === undefined ? "" : "of-failed"}`}>
      <CopyChip text={name.taskId} what="the id" />
      <Tags name={name} task={task} />
      <OfSchedule name={name} task={task} />
      <OfKey name={name} task={task} />
      <Retries name={name} task={task} />
      <Told name={name} task={task} />
    </div>
  );
}

/** In the place of an attempt before the first: what the task waits for. */
function Waiting({ task }: { readonly task: TaskJson }) {
  const { runAt, estimatedStart } = task;
  const why = whyQueued(task);
  return (
    <section className="attempt" aria-labelledby="waiting">
      <h2 id="waiting">{hasEnded(task) ? "It never started" : "It has not started yet"}</h2>
      {!hasEnded(task) && runAt !== undefined && Date.parse(runAt) > Date.now() && (
        <p>
          It is scheduled, and starts <DueTime at={runAt} />.
        </p>
      )}
      {why !== "" && <p>{why}</p>}
      {estimatedStart !== undefined && (
        <p className="secondary">
          Expected to start <DueTime at={estimatedStart} />.
        </p>
      )}
    </section>
  );
}

function Facts({ task }: { readonly task: TaskJson }) {
  // `startedAt` of a task is the start of its last attempt.
  const [first] = task.attempts ?? [];
  const times = [
    ["Submitted", task.createdAt],
    ["Starts not before", task.status === "TASK_STATUS_QUEUED" ? task.runAt : undefined],
    ["Has to start by", task.startBy],
    ["Started", first?.startedAt ?? task.startedAt],
    ["Ended", task.finishedAt],
    ["Kept until", task.expiresAt],
  ] as const;
  return (
    <section aria-labelledby="facts">
      <h2 id="facts">Details</h2>
      <dl className="task-facts">
        {times.map(
          ([term, at]) =>
            at !== undefined && (
              <Fact key={term} term={term}>
                <ExactTime at={at} />
              </Fact>
            ),
        )}
        <Fact term="Priority">{task.priority ?? 0}</Fact>
      </dl>
    </section>
  );
}

function Fact({ term, children }: { readonly term: string; readonly children: ReactNode }) {
  return (
    <div>
      <dt>{term}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** What a task that streams has given so far, live; once it has succeeded, its result has all of it. */
function Pieces({ pieces }: { readonly pieces: TaskPieces }) {
  const { attempt, count, text, isCut } = pieces;
  const box = useFollowing(count);
  return (
    <section aria-labelledby="pieces">
      <h2 id="pieces">Result so far</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="result-text" ref={box} tabIndex={0} aria-label="Pieces">
        {text}
      </section>
      <p className="secondary">
        {counted(count, "piece")}
        {attempt > 1 && ` of attempt ${attempt}, which began anew`}
        {isCut && "; the page shows the end"}
      </p>
    </section>
  );
}

/** The result of a task that succeeded. */
function Result({ name, endpoint }: { readonly name: TaskName; readonly endpoint: string }) {
  const { data, error } = useQuery(resultOf(name, endpoint));
  const heading = <h2 id="result">Result</h2>;
  return (
    <section aria-labelledby="result">
      {data === undefined && heading}
      {error && <Notice kind="error">{messageOf(error)}</Notice>}
      {data === undefined && !error && <Loading />}
      {data && (
        <Content
          blob={data.blob}
          label="Result"
          heading={heading}
          filename={data.filename || `${name.taskId}${extensionOf(data.blob.type)}`}
          {...(!data.isWhole && {
            beginning: { bytes: data.bytes, whole: wholeOf(name, endpoint) },
          })}
        />
      )}
    </section>
  );
}
