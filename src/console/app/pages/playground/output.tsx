/** What came of a call: its result, its pieces as they come, why it failed, or the task that it queued. */
import { CopyButton } from "../../ui/copy-button.tsx";
import { counted } from "../../ui/counted.ts";
import { duration } from "../../ui/duration.ts";
import { Status, type Tone } from "../../ui/status.tsx";
import { useNow } from "../../ui/use-now.ts";
import { Content, extensionOf } from "../tasks/content.tsx";
import type { CallOutput } from "./call.ts";
import { CallFailure } from "./call-failure.tsx";
import type { PlaygroundEndpoint } from "./description.ts";
import type { LinkedTarget } from "./linked-target.ts";
import { OutputHead } from "./output-head.tsx";
import { TaskPanel } from "./task-panel.tsx";

/** How often the time that a call takes is written. */
const CLOCK_MS = 100;
/** Of longer pieces the page shows the beginning. */
const MAX_SHOWN_CHARS = 100_000;

interface OutputProps {
  readonly target: LinkedTarget;
  readonly endpoint: PlaygroundEndpoint;
  readonly output: CallOutput;
  /** When the call under way began. */
  readonly startedMs: number | undefined;
}

export function Output({ target, endpoint, output, startedMs }: OutputProps) {
  const isRunning = startedMs !== undefined;
  const [tone, word = ""] = (isRunning && output.kind !== "task" ? RUNNING : stateOf(output)) ?? [];
  const took = tookOf(output);
  return (
    <section
      className={isRunning && hasEnded(output) ? "card output earlier" : "card output"}
      aria-label="Result"
      aria-busy={isRunning}
    >
      {output.kind !== "task" && (
        <OutputHead
          state={tone && <Status tone={tone}>{word}</Status>}
          took={isRunning ? <Clock startedMs={startedMs} /> : took}
        />
      )}
      <p className="hidden" role="status">
        {!isRunning && tone && `${word} ${took}`}
      </p>
      <Shown target={target} endpoint={endpoint} output={output} />
    </section>
  );
}

function Clock({ startedMs }: { readonly startedMs: number }) {
  return <span aria-hidden="true">{duration(useNow(CLOCK_MS) - startedMs)}</span>;
}

type State = readonly [tone: Tone, word: string];

const RUNNING: State = ["working", "running"];

/** The state of the call; undefined where none was made, and of a task, which has its own. */
function stateOf({ kind }: CallOutput): State | undefined {
  switch (kind) {
    case "result":
    case "pieces":
      return ["done", "answered"];
    case "failure":
      return ["bad", "failed"];
    case "stopped":
      return ["warning", "stopped"];
    default:
      return undefined;
  }
}

/** Whether it is what came of a whole call, whose time is known. */
const hasEnded = (output: CallOutput): boolean => "tookMs" in output && output.tookMs !== undefined;

function tookOf(output: CallOutput): string {
  switch (output.kind) {
    case "pieces": {
      const pieces = counted(output.count, "piece");
      return output.tookMs === undefined ? "" : `${pieces} in ${duration(output.tookMs)}`;
    }
    case "result":
    case "failure":
    case "stopped":
      return "after" in output && output.after !== undefined
        ? tookOf(output.after)
        : `in ${duration(output.tookMs)}`;
    default:
      return "";
  }
}

function Shown({ target, endpoint, output }: Omit<OutputProps, "startedMs">) {
  switch (output.kind) {
    case "task":
      return (
        <TaskPanel key={output.taskId} target={target} endpoint={endpoint} taskId={output.taskId} />
      );
    case "result": {
      const { blob, filename } = output.result;
      return (
        blob && (
          <Content
            blob={blob}
            label="Result"
            filename={filename || `result${extensionOf(blob.type) || ".bin"}`}
          />
        )
      );
    }
    case "pieces":
      return <Pieces text={output.text} />;
    case "failure": {
      const { error, violations, after } = output;
      return (
        <>
          {after && <Pieces text={after.text} />}
          <CallFailure error={error} violations={violations} />
        </>
      );
    }
    default:
      return <p className="secondary output-none">{invitation(endpoint)}</p>;
  }
}

function Pieces({ text }: { readonly text: string }) {
  return (
    <div className="content copied-from">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="result-text" tabIndex={0} aria-label="Pieces">
        {text.slice(0, MAX_SHOWN_CHARS)}
      </section>
      <p className="result-line">
        <CopyButton text={text} what="Result" />
        {text.length > MAX_SHOWN_CHARS && (
          <span className="secondary">There is more: copy the result to see it whole.</span>
        )}
      </p>
    </div>
  );
}

function invitation({ isTask, streams }: PlaygroundEndpoint): string {
  if (isTask) {
    return "Submit queues a task. Its states, progress and log appear here, then its result.";
  }
  return streams ? "The result appears here as it is made." : "The result appears here.";
}
