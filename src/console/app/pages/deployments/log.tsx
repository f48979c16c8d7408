/** The log of a deployment, live. */
import { useRef, useState } from "react";
import type {
  DeploymentLogLineJson,
  DeploymentService,
} from "../../../../../gen/tessera/v1/deployment_pb.js";
import { useOrganization } from "../../api/session.ts";
import { watch } from "../../api/stream.ts";
import { useStream } from "../../api/use-stream.ts";
import { Field } from "../../ui/field.tsx";
import { StreamStatus } from "../../ui/stream-status.tsx";
import { useFollowing } from "../../ui/use-following.ts";
import { DeploymentFrame, useDeploymentName } from "./frame.tsx";

/** Lines that the page begins with. */
const MAX_TAIL_LINES = 500;

/** Lines that the page keeps. */
const MAX_LINES = 5_000;

export function Log() {
  return (
    <DeploymentFrame title="Log" hasStream>
      {() => <LogView />}
    </DeploymentFrame>
  );
}

function LogView() {
  const organization = useOrganization();
  const name = useDeploymentName();
  const { lines, add, last } = useLines();
  const [search, setSearch] = useState("");
  const state = useStream(
    `${organization}/${name}`,
    (options) =>
      watch<typeof DeploymentService.method.watchDeploymentLogs>(
        "/tessera.v1.DeploymentService/WatchDeploymentLogs",
        {
          organization,
          deployment: name,
          follow: true,
          ...(last.current === undefined
            ? { tail: MAX_TAIL_LINES }
            : { afterSequence: last.current }),
        },
        options,
      ),
    add,
  );
  const wanted = search.toLowerCase();
  const shown = lines.filter(({ text = "" }) => text.toLowerCase().includes(wanted));
  const box = useFollowing(shown.length);
  return (
    <section className="log" aria-label="Log">
      <div className="log-bar">
        <Field label="Search">
          {(control) => (
            <input
              {...control}
              type="search"
              value={search}
              onChange={(event) => setSearch(event.target.value)}
            />
          )}
        </Field>
        <StreamStatus state={state} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
      <section className="log-lines" ref={box} tabIndex={0} aria-label="Lines">
        {shown.map((line) => (
          <Line key={line.sequence} line={line} />
        ))}
        {shown.length === 0 && (
          <p className="secondary">
            {lines.length === 0 ? "No lines yet." : "No line has this text."}
          </p>
        )}
      </section>
    </section>
  );
}

function Line({
  line: { time = "", worker, stream, text },
}: {
  readonly line: DeploymentLogLineJson;
}) {
  return (
    <p className={`log-line ${stream}`}>
      <time dateTime={time}>{time.slice(11, 23)}</time>
      <span className="log-worker">{worker || "node"}</span>
      <span>{text}</span>
    </p>
  );
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
