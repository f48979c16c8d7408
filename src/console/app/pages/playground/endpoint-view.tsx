/** One endpoint: the form of its arguments, what came of its call, and the call for other programs. */
import { type RefObject, type SubmitEvent, useEffect, useMemo, useRef, useState } from "react";
import { flushSync } from "react-dom";
import { CallError } from "../../api/errors.ts";
import { Button } from "../../ui/button.tsx";
import { CopyButton } from "../../ui/copy-button.tsx";
import { Field } from "../../ui/field.tsx";
import { Segments } from "../../ui/segments.tsx";
import {
  type ArgumentsForm,
  firstForm,
  type GivenArguments,
  JSON_PROBLEM,
  readArguments,
  switchedForm,
  withValues,
} from "./arguments.ts";
import { type CallOutput, called } from "./call.ts";
import { type PlaygroundEndpoint, pathOf } from "./description.ts";
import { ArgumentField } from "./field.tsx";
import type { LinkedTarget } from "./linked-target.ts";
import { Output } from "./output.tsx";
import { hashOf } from "./recent.tsx";
import { LANGUAGES, type SnippetLanguage, snippet } from "./snippets.ts";
import type { PlaygroundTarget } from "./target.ts";

interface EndpointViewProps {
  readonly target: LinkedTarget;
  readonly endpoint: PlaygroundEndpoint;
  /** The task in the address. */
  readonly taskId: string | undefined;
  /** Ends a call when the page goes. */
  readonly leaving: RefObject<AbortSignal | undefined>;
  /** Of the page, or of a part of it. */
  readonly heading: "h1" | "h2";
}

export function EndpointView(props: EndpointViewProps) {
  const { target, endpoint, taskId, leaving, heading: Heading } = props;
  const [form, setForm] = useState(() => firstForm(endpoint));
  const [output, show] = useState<CallOutput>({ kind: "nothing" });
  const [call, setCall] = useState<{ readonly startedMs: number; stop(): void }>();
  const view = useRef<HTMLElement>(null);
  const given = useMemo(() => readArguments(endpoint, form), [endpoint, form]);
  useEffect(() => {
    if (taskId !== undefined) {
      show({ kind: "task", taskId });
    }
  }, [taskId]);

  /** Shows problems beside their fields, and leads to the first. */
  const complain = (problems: ArgumentsForm["problems"]): boolean => {
    flushSync(() => setForm((before) => ({ ...before, problems })));
    const field = view.current?.querySelector<HTMLElement>('[aria-invalid="true"]');
    field?.focus();
    return field !== null;
  };
  const run = async (): Promise<void> => {
    if (call !== undefined || complain(given.problems)) {
      return;
    }
    const calling = new AbortController();
    setCall({ startedMs: Date.now(), stop: () => calling.abort() });
    const signal = AbortSignal.any([calling.signal, leaving.current ?? calling.signal]);
    for await (const next of called(target, endpoint, given, signal)) {
      if (next.kind === "task") {
        location.hash = hashOf(endpoint.name, next.taskId);
      }
      if (next.kind === "failure") {
        const [problems, violations] = placed(endpoint, form, next.error);
        show({ ...next, violations });
        complain(problems);
      } else {
        show(next);
      }
    }
    flushSync(() => setCall(undefined));
    reveal(view.current?.querySelector(".output"));
  };
  return (
    <article className="endpoint" ref={view}>
      <header>
        <div className="endpoint-title">
          <Heading>
            <bdi>{endpoint.name}</bdi>
          </Heading>
          <KindBadge endpoint={endpoint} />
          <code>POST {decodeURI(pathOf(endpoint, endpoint.isTask ? "submit" : undefined))}</code>
        </div>
        {endpoint.description !== "" && <p className="description">{endpoint.description}</p>}
      </header>
      <form
        className="card"
        noValidate
        onSubmit={(event: SubmitEvent) => {
          event.preventDefault();
          void run();
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void run();
          }
        }}
      >
        <Arguments endpoint={endpoint} form={form} onChange={setForm} />
        <div className="form-actions">
          <Button kind="primary" type="submit" isBusy={call !== undefined}>
            {endpoint.isTask ? "Submit" : "Call"}
            <span className="shortcut" aria-hidden="true">
              {navigator.platform.startsWith("Mac") ? "⌘" : "Ctrl"} Enter
            </span>
          </Button>
          {call && !endpoint.isTask && <Button onClick={call.stop}>Stop the call</Button>}
        </div>
      </form>
      <div className="endpoint-side">
        <Output target={target} endpoint={endpoint} output={output} startedMs={call?.startedMs} />
        <Snippets target={target} endpoint={endpoint} given={given} />
      </div>
    </article>
  );
}

export function KindBadge({ endpoint: { isTask } }: { readonly endpoint: PlaygroundEndpoint }) {
  return <span className="endpoint-kind">{isTask ? "task" : "api"}</span>;
}

/** The violations that a failure names: those of fields, and the rest as lines. */
function placed(
  endpoint: PlaygroundEndpoint,
  { json }: ArgumentsForm,
  err: unknown,
): readonly [problems: ArgumentsForm["problems"], others: readonly string[]] {
  const problems: Record<string, string> = {};
  const others: string[] = [];
  for (const { field, description } of err instanceof CallError ? err.violations : []) {
    const [name = "", ...rest] = field.split(".");
    const argument = endpoint.arguments.find((one) => one.name === name);
    if (argument === undefined || (json !== undefined && !argument.file)) {
      others.push(field === "" ? description : `${field}: ${description}`);
    } else {
      problems[name] = [...(rest.length > 0 ? [rest.join(".")] : []), description].join(": ");
    }
  }
  return [problems, others];
}

/** Scrolls to an element whose start is not visible, as on a phone. */
function reveal(element: Element | null | undefined): void {
  const { top } = element?.getBoundingClientRect() ?? { top: 0 };
  if (top < 0 || top > innerHeight * 0.8) {
    element?.scrollIntoView({ block: "start" });
  }
}

interface ArgumentsProps {
  readonly endpoint: PlaygroundEndpoint;
  readonly form: ArgumentsForm;
  onChange(form: ArgumentsForm): void;
}

function Arguments({ endpoint, form, onChange }: ArgumentsProps) {
  const { entries, json, problems } = form;
  if (endpoint.arguments.length === 0) {
    return <p className="secondary">Takes no arguments.</p>;
  }
  const fields = endpoint.arguments.filter(({ file }) => json === undefined || file);
  return (
    <>
      <div className="card-head">
        <Segments
          label="How to enter the arguments"
          choices={["Form", "JSON"]}
          value={json === undefined ? "Form" : "JSON"}
          onChange={(choice) =>
            (choice === "Form") === (json === undefined) || onChange(switchedForm(endpoint, form))
          }
        />
        <Button kind="quiet" onClick={() => onChange(withValues(endpoint, form, endpoint.example))}>
          Use example
        </Button>
      </div>
      {json !== undefined && (
        <Field label="Arguments as JSON" error={problems[JSON_PROBLEM]}>
          {(control) => (
            <textarea
              {...control}
              className="code"
              rows={10}
              spellCheck={false}
              value={json}
              onChange={({ target }) => onChange({ ...form, json: target.value })}
            />
          )}
        </Field>
      )}
      {fields.map((argument) => (
        <ArgumentField
          key={argument.name}
          argument={argument}
          entry={entries[argument.name]}
          problem={problems[argument.name]}
          onChange={(entry) =>
            onChange({ ...form, entries: { ...entries, [argument.name]: entry } })
          }
        />
      ))}
    </>
  );
}

interface SnippetsProps {
  readonly target: PlaygroundTarget;
  readonly endpoint: PlaygroundEndpoint;
  readonly given: GivenArguments;
}

/** The same call for other programs. */
function Snippets({ target, endpoint, given }: SnippetsProps) {
  const [language, setLanguage] = useState<SnippetLanguage>("curl");
  const text = snippet(language, target, endpoint, given);
  return (
    <section className="card snippets copied-from" aria-label="From a program">
      <div className="card-head">
        <Segments<SnippetLanguage>
          label="Tool"
          choices={LANGUAGES}
          value={language}
          onChange={setLanguage}
        />
        <CopyButton isIcon text={text} what={language} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </section>
  );
}
