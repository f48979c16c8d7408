/** What came of a call: its result, its pieces as they come, why it failed, or the task that it queued. */
import { CopyButton } from "../../ui/copy-button.tsx";
import { counted } from "../../ui/counted.ts";
import { duration } from "../../ui/duration.ts";
import { useNow } from "../../ui/use-now.ts";
import { Content, extensionOf } from "../tasks/content.tsx";
import type { CallOutput } from "./call.ts";
import { CallFailure } from "./call-failure.tsx";
import type { PlaygroundEndpoint } from "./description.ts";
import type { PlaygroundTarget } from "./target.ts";
import { TaskPanel } from "./task-panel.tsx";

/** How often the time that a call takes is written. */
const CLOCK_MS = 100;
/** Of longer pieces the page shows the beginning. */
const MAX_SHOWN_CHARS = 100_000;

interface OutputProps {
  readonly target: PlaygroundTarget;
  readonly endpoint: PlaygroundEndpoint;
  readonly output: CallOutput;
  /** When the call under way began. */
  readonly startedMs: number | undefined;
}

export function Output({ target, endpoint, output, startedMs }: OutputProps) {
  const took = tookOf(output);
  return (
    <section className="card output" aria-label="Result">
      <div className="card-head">
        <h2>Result</h2>
        <span className="hint" aria-hidden="true">
          {startedMs === undefined ? took : <Clock startedMs={startedMs} />}
        </span>
        <p className="hidden" role="status">
          {took}
        </p>
      </div>
      <Shown target={target} endpoint={endpoint} output={output} />
    </section>
  );
}

function Clock({ startedMs }: { readonly startedMs: number }) {
  return duration(useNow(CLOCK_MS) - startedMs);
}

function tookOf(output: CallOutput): string {
  switch (output.kind) {
    case "result":
      return `Answered in ${duration(output.tookMs)}`;
    case "pieces": {
      const pieces = counted(output.count, "piece");
      return output.tookMs === undefined ? "" : `${pieces} in ${duration(output.tookMs)}`;
    }
    case "failure":
      return output.after ? tookOf(output.after) : "";
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
    case "stopped":
      return <p className="secondary">Stopped.</p>;
    default:
      return <p className="secondary">{invitation(endpoint)}</p>;
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
