/** One attempt of a task: how it ended, where in the author's code, and what it wrote. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import type { TaskAttemptJson, TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { stacksOf } from "../../api/stacks.ts";
import type { TaskName } from "../../api/tasks.ts";
import { CopyButton, CopyChip } from "../../ui/copy-button.tsx";
import { counted } from "../../ui/counted.ts";
import { between } from "../../ui/duration.ts";
import { bytes } from "../../ui/quantity.ts";
import { Status, type Tone } from "../../ui/status.tsx";
import { DueTime, momentText, Time } from "../../ui/time.tsx";
import { useNow } from "../../ui/use-now.ts";
import { reasonOf } from "./failure-text.ts";
import { TaskLog } from "./log.tsx";
import { AlikeFailures } from "./related.tsx";
import { alikeText } from "./spans.ts";
import { hasFrame, innermost, type StackPart, stackIn } from "./stack.ts";
import type { TaskEvents } from "./use-task-events.ts";

/** How often it is said for how long an attempt runs. */
const REFRESH_MS = 1_000;

/** A stack that is written a moment after the end of its attempt. */
const MAX_STACK_DELAY_MS = 5_000;

/** Parts of a stack that are seen at once; a deep one folds the rest. */
const MAX_PARTS = 12;

interface AttemptProps {
  readonly attempt: TaskAttemptJson;
  readonly task: TaskJson;
  readonly name: TaskName;
  readonly events: TaskEvents;
}

export function Attempt({ attempt, task, name, events }: AttemptProps) {
  const { number = 0, worker = "", node, startedAt = "", endedAt, failure, retryAt } = attempt;
  const { peakMemoryBytes } = attempt;
  const [tone, word] = outcomeOf(attempt, task);
  const lines = events.lines.filter((line) => line.attempt === number);
  return (
    <section className="attempt" aria-labelledby="attempt">
      <div className="attempt-line">
        <h2 id="attempt">Attempt {number}</h2>
        <Status tone={tone}>{word}</Status>
        <span className="secondary">
          {word === "running" ? (
            <RunningFor since={startedAt} />
          ) : (
            <>
              {between(startedAt, endedAt, Date.now())}, started <Time at={startedAt} />
            </>
          )}
        </span>
      </div>
      {failure !== undefined && <Failure attempt={attempt} task={task} name={name} />}
      <p className="secondary attempt-where">
        {worker && (
          <span>
            Worker <CopyChip text={worker} shown={shortWorker(worker)} what="the worker" />
          </span>
        )}
        {node && <span>on node {node}</span>}
        {peakMemoryBytes !== undefined && (
          <span title="The most memory that the worker held while this ran, with other calls in it">
            {bytes(Number(peakMemoryBytes))} at its peak
          </span>
        )}
        {retryAt !== undefined && Date.parse(retryAt) > Date.now() && (
          <span>
            Next attempt <DueTime at={retryAt} />
          </span>
        )}
      </p>
      <TaskLog events={{ lines, state: events.state }} />
    </section>
  );
}

/** Alone, so that the rest of the page is not drawn each second. */
function RunningFor({ since }: { readonly since: string }) {
  const nowMs = Math.max(useNow(REFRESH_MS), Date.now());
  return (
    <span title={`Started ${momentText(Date.parse(since))}`}>
      for {between(since, undefined, nowMs)}
    </span>
  );
}

function Failure({ attempt, task, name }: Omit<AttemptProps, "events">) {
  const { worker, startedAt = "", endedAt = "", failure } = attempt;
  const message = failure?.message ?? "";
  const alike = alikeText(task);
  const { data: lines } = useQuery(stacksOf(name, endedAt));
  // Up to 500 lines are read for it, which change only when they are asked for again.
  const { text, parts } = useMemo(() => {
    const toMs = Date.parse(endedAt) + MAX_STACK_DELAY_MS;
    // Attempts may be quicker than the log: the message tells whose stack it is.
    const [said = ""] = message.split("\n");
    const found = lines?.find(({ time = "", worker: of, text = "" }) => {
      const ms = Date.parse(time);
      const isInTime = ms >= Date.parse(startedAt) && ms <= toMs;
      return of === worker && isInTime && text.includes(said) && hasFrame(text);
    });
    const text = found?.text ?? "";
    const all = stackIn(text);
    // The message is above already.
    const parts = all.filter((part) => part.kind !== "text" || !isMessage(part.text, message));
    return { text, parts };
  }, [lines, worker, startedAt, endedAt, message]);
  return (
    <>
      <div className="attempt-failure copied-from">
        {alike !== "" && <p>{alike}</p>}
        <pre className="result-text">{message || reasonOf(failure?.reason)}</pre>
        {task.failure !== undefined && attempt === task.attempts?.at(-1) && (
          <AlikeFailures name={name} task={task} />
        )}
      </div>
      {parts.length > 0 && <Stack parts={parts} text={text} />}
    </>
  );
}

const isMessage = (line: string, message: string): boolean =>
  message !== "" && line.endsWith(message.split("\n").at(-1) ?? "");

function Stack({ parts, text }: { readonly parts: readonly StackPart[]; readonly text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="stack copied-from" aria-label="Stack" tabIndex={0}>
      <CopyButton isIcon text={text} what="the stack" />
      <Parts parts={parts.slice(0, MAX_PARTS)} at={innermost(parts, text)} />
      {parts.length > MAX_PARTS && (
        <details>
          <summary>{counted(parts.length - MAX_PARTS, "more frame")}</summary>
          <Parts parts={parts.slice(MAX_PARTS)} at={innermost(parts, text)} />
        </details>
      )}
    </section>
  );
}

interface PartsProps {
  readonly parts: readonly StackPart[];
  /** Where it happened. */
  readonly at: StackPart | undefined;
}

const Parts = ({ parts, at }: PartsProps) =>
  parts.map((part, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a stack never change
    <Part key={index} part={part} isPlace={part === at} />
  ));

function Part({ part, isPlace }: { readonly part: StackPart; readonly isPlace: boolean }) {
  return part.kind === "library" ? (
    <details>
      <summary>{counted(part.frames.length, "frame")} of libraries</summary>
      <pre>{part.frames.join("\n")}</pre>
    </details>
  ) : (
    <pre className={isPlace ? "own innermost" : part.kind}>
      {part.text}
      {part.kind === "own" && part.times !== undefined && (
        <span className="secondary"> {part.times} times</span>
      )}
    </pre>
  );
}

/** The end of a worker's id, which tells it from others. */
const shortWorker = (worker: string): string => worker.split("/").at(-1)?.slice(-12) ?? worker;

/** How an attempt ended, or that it runs. */
export function outcomeOf(attempt: TaskAttemptJson, task: TaskJson): readonly [Tone, string] {
  const { number, endedAt, failure } = attempt;
  if (failure !== undefined) {
    const harmless = failure.reason === "FAILURE_REASON_INTERRUPTED";
    return [harmless ? "warning" : "bad", reasonOf(failure.reason)];
  }
  if (endedAt === undefined) {
    return ["working", "running"];
  }
  return number === task.attempt && task.status === "TASK_STATUS_SUCCESS"
    ? ["done", "success"]
    : ["warning", "cancelled"];
}
