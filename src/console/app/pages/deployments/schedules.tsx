/** The schedules of a deployment: when each calls, what became of its last time, and what keeps it. */
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import type { DeploymentJson } from "../../../../../gen/tessera/v1/deployment_pb.js";
import type { ScheduleJson } from "../../../../../gen/tessera/v1/schedule_pb.js";
import { tasksOf } from "../../api/deployments.ts";
import { messageOf } from "../../api/errors.ts";
import { runsOf, schedules, schedulesOf } from "../../api/schedules.ts";
import { useOrganization } from "../../api/session.ts";
import { Button } from "../../ui/button.tsx";
import { Command } from "../../ui/command.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { Empty } from "../../ui/empty.tsx";
import { Facts } from "../../ui/facts.tsx";
import { Loading } from "../../ui/loading.tsx";
import { Menu } from "../../ui/menu.tsx";
import { Notice } from "../../ui/notice.tsx";
import { OpenableTable } from "../../ui/openable-table.tsx";
import { Status } from "../../ui/status.tsx";
import { DueTime, Time } from "../../ui/time.tsx";
import { useToast } from "../../ui/toasts.tsx";
import { ListedStatus } from "../tasks/state.tsx";
import { TaskLink } from "../tasks/task-link.tsx";
import { wordsOfCron } from "./cron-words.ts";
import { DeploymentFrame, useDeploymentName } from "./frame.tsx";
import { CATCH_UPS, OVERLAPS, ScheduleForm } from "./schedule-form.tsx";
import { clockText, ScheduleTimes } from "./schedule-times.tsx";
import { useAct } from "./use-act.ts";
import "./settings.css";

type Asked =
  | { readonly what: "create" }
  | { readonly what: "edit" | "delete"; readonly schedule: ScheduleJson };

export function Schedules() {
  return (
    <DeploymentFrame title="Schedules">
      {(deployment) => <Registered of={deployment} />}
    </DeploymentFrame>
  );
}

function Registered({ of: { endpoints = [] } }: { readonly of: DeploymentJson }) {
  const { organization, deployment, readAgain, act } = useAct("schedules");
  const navigate = useNavigate();
  const toast = useToast();
  const { data: found = [], isPending } = useQuery(schedulesOf(organization, deployment));
  const [asked, setAsked] = useState<Asked>();
  const close = () => {
    setAsked(undefined);
    void readAgain();
  };
  const tasks = tasksOf(endpoints);
  return (
    <section aria-label="Schedules">
      {found.length > 0 && tasks.length > 0 && (
        <header className="section-header">
          <p className="secondary">Submit tasks on a schedule (cron).</p>
          <Button kind="primary" onClick={() => setAsked({ what: "create" })}>
            Create schedule
          </Button>
        </header>
      )}
      {!isPending && found.length === 0 && (
        <Empty inPage title="No schedules yet">
          {tasks.length > 0 ? (
            <>
              <p>A schedule submits a task at each time of a cron expression, exactly one.</p>
              <Command
                text={`npx tessera-platform schedule create ${deployment} nightly --endpoint-name ${tasks[0]} --cron '0 3 * * *'`}
              />
              <Button kind="primary" onClick={() => setAsked({ what: "create" })}>
                Create schedule
              </Button>
              <a href="/docs/schedules.html">How schedules work</a>
            </>
          ) : (
            <p>A schedule calls a task endpoint, and this deployment has none.</p>
          )}
        </Empty>
      )}
      {found.length > 0 && (
        <OpenableTable
          label="Schedules, by their next time"
          items={[...found].sort(byNext)}
          keyOf={({ name = "" }) => name}
          columns={[
            {
              name: "Name",
              cell: ({ name, declared }) => (
                <>
                  {name}
                  {declared && <span className="secondary">from tessera.yaml</span>}
                </>
              ),
            },
            { name: "Endpoint", narrow: "unnamed", cell: ({ endpoint }) => endpoint },
            { name: "Times", grows: true, narrow: "unnamed", cell: (one) => <Times of={one} /> },
            { name: "State", cell: (one) => <State of={one} /> },
            { name: "Next run", cell: (one) => <Next of={one} /> },
            { name: "Last run", cell: (one) => <Last of={one} /> },
          ]}
          detailsOf={(one) => <Details of={one} />}
          actions={(schedule) => {
            const { name = "", paused = false } = schedule;
            return (
              <Menu
                id={`schedule-${name}`}
                label={`Actions for ${name}`}
                items={[
                  {
                    label: "Run now",
                    run: () =>
                      act({
                        run: async () => {
                          const { taskId = "" } = await schedules.runSchedule({
                            ...{ organization, deployment, schedule: name },
                          });
                          await navigate({
                            to: "/o/$organization/deployments/$deployment/tasks/$task",
                            params: { organization, deployment, task: taskId },
                          });
                        },
                        said: `This is the task of ${name}`,
                      }),
                  },
                  { label: "Edit", run: () => setAsked({ what: "edit", schedule }) },
                  {
                    label: paused ? "Resume" : "Pause",
                    run: () =>
                      act({
                        run: () =>
                          schedules.updateSchedule({
                            ...{ organization, deployment, updateMask: "paused" },
                            schedule: { name, paused: !paused },
                          }),
                        said: `${name} is ${paused ? "resumed" : "paused"}`,
                      }),
                  },
                  {
                    label: "Delete",
                    isDangerous: true,
                    run: () => setAsked({ what: "delete", schedule }),
                  },
                ]}
              />
            );
          }}
        />
      )}
      {(asked?.what === "create" || asked?.what === "edit") && (
        <ScheduleForm
          schedule={asked.what === "edit" ? asked.schedule : undefined}
          endpoints={tasks}
          onDone={(said) => {
            toast(said);
            close();
          }}
          onClose={close}
        />
      )}
      {asked?.what === "delete" && (
        <Confirm
          title={`Delete ${asked.schedule.name}?`}
          action="Delete"
          run={() => {
            const { name: schedule = "" } = asked.schedule;
            return schedules.deleteSchedule({ organization, deployment, schedule });
          }}
          onDone={close}
          onClose={close}
        >
          <p>
            The tasks that it has submitted stay.
            {asked.schedule.declared &&
              " It is from tessera.yaml: the next deploy makes it again, unless the file has it no more."}
          </p>
        </Confirm>
      )}
    </section>
  );
}

/** The sooner the next time, the earlier; without one last, by name. */
const byNext = (one: ScheduleJson, other: ScheduleJson): number =>
  nextOf(one).localeCompare(nextOf(other)) || (one.name ?? "").localeCompare(other.name ?? "");

/** After all times there is a letter. */
const nextOf = ({ nextTimes = [] }: ScheduleJson): string => nextTimes[0] ?? "never";

/** In words where it has some, and as it is written. */
function Times({ of: { cron = "", timeZone } }: { readonly of: ScheduleJson }) {
  const words = wordsOfCron(cron);
  return words === undefined ? (
    <>
      <code>{cron}</code>
      <span className="secondary">{timeZone}</span>
    </>
  ) : (
    <>
      {words}
      <span className="secondary schedule-cron">
        <code>{cron}, </code>
        {timeZone}
      </span>
    </>
  );
}

function State({ of: { paused, problem } }: { readonly of: ScheduleJson }) {
  if (paused) {
    return <Status tone="idle">paused</Status>;
  }
  return problem ? (
    <>
      <Status tone="bad">problem</Status>
      <span className="secondary">{problem}</span>
    </>
  ) : (
    <Status tone="good">active</Status>
  );
}

/** The next time by the clock of its zone. */
function Next({ of: { nextTimes = [], timeZone = "UTC" } }: { readonly of: ScheduleJson }) {
  const [next] = nextTimes;
  return (
    next !== undefined && (
      <>
        <span className="schedule-at">{clockText(next, timeZone)}</span>
        <span className="secondary">
          <DueTime at={next} />
        </span>
      </>
    )
  );
}

/** The next times of a schedule, its last runs, and how it calls. */
function Details({ of: schedule }: { readonly of: ScheduleJson }) {
  const { nextTimes = [], timeZone = "UTC", arguments: args = {} } = schedule;
  const { overlap, catchUp, createdAt, createdBy, updatedAt, updatedBy, version = 1 } = schedule;
  return (
    <Facts
      entries={{
        "Next times":
          nextTimes.length > 0 ? (
            <ScheduleTimes times={nextTimes} zone={timeZone} />
          ) : (
            "none while it is paused"
          ),
        "Last runs": <Runs of={schedule} />,
        Arguments: <code>{JSON.stringify(args)}</code>,
        "While an earlier task is under way": wordsIn(OVERLAPS, overlap),
        "To make up for missed times": wordsIn(CATCH_UPS, catchUp),
        ...(createdAt && { Created: <By at={createdAt} who={createdBy} /> }),
        ...(version > 1 && updatedAt && { Changed: <By at={updatedAt} who={updatedBy} /> }),
      }}
    />
  );
}

/** What a choice of the form is called. */
const wordsIn = (
  choices: readonly (readonly [value: string, words: string])[],
  chosen: string | undefined,
): string => choices.find(([value]) => value === chosen)?.[1] ?? "";

function By({ at, who }: { readonly at: string; readonly who: string | undefined }) {
  return (
    <>
      <Time at={at} /> by <bdi>{who}</bdi>
    </>
  );
}

function Runs({ of: schedule }: { readonly of: ScheduleJson }) {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  const { data: runs, error } = useQuery(runsOf(organization, deployment, schedule));
  if (error) {
    return <Notice kind="error">{messageOf(error)}</Notice>;
  }
  if (runs === undefined) {
    return <Loading />;
  }
  return runs.length === 0 ? (
    `none among the newest tasks of ${schedule.endpoint}`
  ) : (
    <ol className="schedule-times" aria-label="Last runs">
      {runs.map((task) => (
        <li key={task.taskId}>
          <TaskLink name={{ organization, deployment, taskId: task.taskId ?? "" }} />
          <ListedStatus task={task} />
          <span className="secondary">
            {task.createdAt !== undefined && <Time at={task.createdAt} />}
          </span>
        </li>
      ))}
    </ol>
  );
}

const OUTCOMES: Readonly<Record<string, string>> = {
  SCHEDULE_OUTCOME_SKIPPED: "passed over",
  SCHEDULE_OUTCOME_MISSED: "missed",
  SCHEDULE_OUTCOME_REFUSED: "refused",
};

/** Its last task, and what became of its last time where that has none. */
function Last({ of: { last, lastTaskId } }: { readonly of: ScheduleJson }) {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  const outcome = OUTCOMES[last?.outcome ?? ""];
  if (!lastTaskId && last?.time === undefined) {
    return "never";
  }
  return (
    <>
      {lastTaskId && <TaskLink name={{ organization, deployment, taskId: lastTaskId }} />}
      {last?.time !== undefined && (
        <span className="secondary">
          {outcome} <Time at={last.time} />
          {outcome !== undefined && last.message ? `: ${last.message}` : ""}
        </span>
      )}
    </>
  );
}
