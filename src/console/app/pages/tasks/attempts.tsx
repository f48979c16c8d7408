/** The attempts of a task: when and where each ran, how it ended, and when the next one starts. */
import type { TaskAttemptJson, TaskJson } from "../../../../../gen/tessera/v1/task_pb.js";
import { between } from "../../ui/duration.ts";
import { Status, type Tone } from "../../ui/status.tsx";
import { Time } from "../../ui/time.tsx";
import { useNow } from "../../ui/use-now.ts";
import { reasonOf } from "./state.tsx";

/** How often the bars of what runs grow. */
const REFRESH_MS = 1_000;

export function Attempts({ task }: { readonly task: TaskJson }) {
  const { attempts = [], createdAt = "", finishedAt } = task;
  const nowMs = useNow(finishedAt === undefined ? REFRESH_MS : undefined);
  const fromMs = Date.parse(createdAt);
  const toMs = Math.max(finishedAt === undefined ? nowMs : Date.parse(finishedAt), fromMs + 1);
  return (
    <section aria-labelledby="attempts">
      <h2 id="attempts">Attempts</h2>
      {attempts.length === 0 && <p className="secondary">It has not started yet.</p>}
      <ol className="attempts">
        {attempts.map((attempt, index) => (
          <Attempt
            key={attempt.number}
            attempt={attempt}
            task={task}
            leftOut={(attempt.number ?? 0) - (attempts[index - 1]?.number ?? 0) - 1}
            nowMs={nowMs}
            range={[fromMs, toMs]}
          />
        ))}
      </ol>
    </section>
  );
}

interface AttemptProps {
  readonly attempt: TaskAttemptJson;
  readonly task: TaskJson;
  /** How many attempts before it are not kept. */
  readonly leftOut: number;
  readonly nowMs: number;
  /** From the submit of the task to its end, or to now. */
  readonly range: readonly [fromMs: number, toMs: number];
}

function Attempt({ attempt, task, leftOut, nowMs, range: [fromMs, toMs] }: AttemptProps) {
  const { number = 0, worker, node, startedAt = "", endedAt, failure, retryAt } = attempt;
  const [tone, word] = outcomeOf(attempt, task);
  const share = (ms: number): string =>
    `${(100 * Math.min(Math.max(ms - fromMs, 0), toMs - fromMs)) / (toMs - fromMs)}%`;
  const startMs = Date.parse(startedAt);
  const endMs = endedAt === undefined ? nowMs : Date.parse(endedAt);
  return (
    <>
      {leftOut > 0 && <li className="secondary">{leftOut} more in between</li>}
      <li className="attempt">
        <div className="attempt-line">
          <h3>Attempt {number}</h3>
          <Status tone={tone}>{word}</Status>
          <span className="secondary">
            {between(startedAt, endedAt, nowMs)}, started <Time at={startedAt} />
          </span>
        </div>
        <div className="attempt-track" aria-hidden="true">
          <span
            className={tone}
            style={{ marginInlineStart: share(startMs), width: share(fromMs + endMs - startMs) }}
          />
        </div>
        {failure !== undefined && <pre className="attempt-failure">{failure.message}</pre>}
        <p className="secondary">
          {worker && <>Worker {worker}</>}
          {node && <> on node {node}</>}
          {retryAt !== undefined && (
            <>
              {". "}Next attempt <Time at={retryAt} />
            </>
          )}
        </p>
      </li>
    </>
  );
}

function outcomeOf(attempt: TaskAttemptJson, task: TaskJson): readonly [Tone, string] {
  const { number, endedAt, failure } = attempt;
  if (failure !== undefined) {
    const harmless = failure.reason === "FAILURE_REASON_INTERRUPTED";
    return [harmless ? "warning" : "bad", reasonOf(failure.reason)];
  }
  if (endedAt === undefined) {
    return ["working", "running"];
  }
  return number === task.attempt && task.status === "TASK_STATUS_SUCCESS"
    ? ["good", "succeeded"]
    : ["warning", "cancelled"];
}
