/** The log of a deployment, live. */
import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Fragment, useRef, useState } from "react";
import type {
  DeploymentLogLineJson,
  DeploymentService,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { useOrganization } from "../../api/session.ts";
import { watch } from "../../api/stream.ts";
import { useStream } from "../../api/use-stream.ts";
import { Field } from "../../ui/field.tsx";
import { SearchField } from "../../ui/search-field.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { useFollowing } from "../../ui/use-following.ts";
import { DeploymentFrame, useDeploymentName } from "./frame.tsx";
import { LEAST_LEVELS, type LogSearch, logFilterAt, PERIODS, readLogSearch } from "./log-search.ts";
import "../../ui/log.css";

/** Lines that the page begins with. */
const MAX_TAIL_LINES = 500;

/** Lines that the page keeps. */
const MAX_LINES = 5_000;

/** Places that are marked in one line. */
const MAX_MARKS = 20;

const route = getRouteApi("/signed-in/o/$organization/deployments/$deployment/log");

export function Log() {
  const search: LogSearch = route.useSearch();
  return (
    <DeploymentFrame title="Log" hasStream>
      {() => (
        <>
          <LogFilter search={search} />
          {/* Another filter is another list of lines. */}
          <LogView key={JSON.stringify(search)} search={search} />
        </>
      )}
    </DeploymentFrame>
  );
}

function LogView({ search }: { readonly search: LogSearch }) {
  const organization = useOrganization();
  const name = useDeploymentName();
  const { lines, add, last } = useLines();
  const state = useStream(
    `${organization}/${name}`,
    (options) =>
      watch<typeof DeploymentService.method.watchDeploymentLogs>(
        "/tessera.v1.DeploymentService/WatchDeploymentLogs",
        {
          organization,
          deployment: name,
          follow: true,
          ...logFilterAt(search, Date.now()),
          ...(last.current === undefined
            ? { tail: MAX_TAIL_LINES }
            : { afterSequence: last.current }),
        },
        options,
      ),
    add,
  );
  const box = useFollowing(lines.length);
  const isFiltered = Object.keys(search).length > 0;
  return (
    <section className="log" aria-label="Log">
      <StreamStatus state={state} />
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="log-lines" ref={box} tabIndex={0} aria-label="Lines">
        {lines.map((line) => (
          <Line key={line.sequence} line={line} search={search.search ?? ""} />
        ))}
        {lines.length === 0 && (
          <p className="secondary">{isFiltered ? "No line is like this." : "No lines yet."}</p>
        )}
      </section>
    </section>
  );
}

interface LineProps {
  readonly line: DeploymentLogLineJson;
  readonly search: string;
}

function Line({ line: { time = "", worker, level, taskId, text = "" }, search }: LineProps) {
  const organization = useOrganization();
  const deployment = useDeploymentName();
  return (
    <p className={`log-line ${level}`}>
      <time dateTime={time} title={time}>
        {time.slice(11, 23)}
      </time>
      <span className="log-worker">{worker || "node"}</span>
      {taskId && (
        <Link
          to="/o/$organization/deployments/$deployment/tasks/$task"
          params={{ organization, deployment, task: taskId }}
          aria-label={`Task ${taskId.slice(-12)}`}
        >
          {taskId.slice(-12)}
        </Link>
      )}
      <span>
        <Marked text={text} search={search} />
      </span>
    </p>
  );
}

/** A text with each place marked that has what was searched for. */
function Marked({ text, search }: { readonly text: string; readonly search: string }) {
  const places = placesOf(text, search);
  return places.length === 0 ? (
    text
  ) : (
    <>
      {places.map((at, index) => (
        <Fragment key={at}>
          {text.slice(index === 0 ? 0 : (places[index - 1] ?? 0) + search.length, at)}
          <mark>{text.slice(at, at + search.length)}</mark>
        </Fragment>
      ))}
      {text.slice((places.at(-1) ?? 0) + search.length)}
    </>
  );
}

/** Where a text has another, whatever the case; the first few. */
function placesOf(text: string, search: string): number[] {
  const [whole, wanted] = [text.toLowerCase(), search.toLowerCase()];
  const places: number[] = [];
  // A letter may be longer in lower case, and then the places are not those of the text.
  if (wanted === "" || whole.length !== text.length) {
    return places;
  }
  for (let at = whole.indexOf(wanted); at !== -1 && places.length < MAX_MARKS; ) {
    places.push(at);
    at = whole.indexOf(wanted, at + wanted.length);
  }
  return places;
}

/** The newest lines, added once per frame however many come. */
function useLines() {
  const [lines, setLines] = useState<readonly DeploymentLogLineJson[]>([]);
  const arriving = useRef<DeploymentLogLineJson[]>([]);
  const last = useRef<string>(undefined);
  const add = (line: DeploymentLogLineJson): void => {
    last.current = String(line.sequence);
    if (arriving.current.push(line) === 1) {
      requestAnimationFrame(() => {
        const added = arriving.current;
        arriving.current = [];
        setLines((before) => [...before, ...added].slice(-MAX_LINES));
      });
    }
  };
  return { lines, add, last };
}

/** The choices by which the log of a deployment is filtered. */
function LogFilter({ search }: { readonly search: LogSearch }) {
  const navigate = useNavigate();
  const change = (changed: Readonly<Record<string, string>>) =>
    void navigate({ to: ".", search: readLogSearch({ ...search, ...changed }), replace: true });
  return (
    <section className="filters" aria-label="Filter">
      <SearchField
        label="Search"
        value={search.search}
        onChange={(text) => change({ search: text })}
      />
      <Field label="Level">
        {(control) => (
          <select
            {...control}
            value={search.level ?? ""}
            onChange={({ target }) => change({ level: target.value })}
          >
            <option value="">any</option>
            {Object.entries(LEAST_LEVELS).map(([level, label]) => (
              <option key={level} value={level}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <Field label="Written in">
        {(control) => (
          <select
            {...control}
            value={search.since ?? ""}
            onChange={({ target }) => change({ since: target.value })}
          >
            <option value="">any time</option>
            {Object.entries(PERIODS).map(([since, [label]]) => (
              <option key={since} value={since}>
                {label}
              </option>
            ))}
          </select>
        )}
      </Field>
      <SearchField
        label="Task"
        value={search.task}
        maxLength={64}
        onChange={(task) => change({ task: task.trim() })}
      />
    </section>
  );
}
