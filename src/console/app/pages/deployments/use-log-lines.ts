/**
 * The lines of a deployment's log: the newest at once and new ones as they are written, then the
 * earlier ones, in steps from the newest to the oldest. So all that is kept can be searched and
 * counted in the page, and nothing is asked for again while a person chooses.
 */
import { useEffect, useRef, useState } from "react";
import type { DeploymentService } from "../../../../../gen/tessera/v1/deployment_pb.js";
import { watch } from "../../api/stream.ts";
import { useStream } from "../../api/use-stream.ts";
import { kept, MAX_LINES, readLine, type ShownLine } from "./log-lines.ts";

/** Lines that the page begins with. */
const FIRST_LINES = 1_000;

/** Earlier lines of one request. */
const STEP_LINES = 3_000;

/** Lines that come within this time are shown together. */
const GATHER_MS = 80;

export interface LogName {
  readonly organization: string;
  readonly deployment: string;
}

type EarlierState = "reading" | "read" | "failed";

export function useLogLines(name: LogName) {
  const [lines, setLines] = useState<readonly ShownLine[]>([]);
  const [first, setFirst] = useState<number>();
  const [earlier, setEarlier] = useState<EarlierState>("read");
  const arriving = useRef<ShownLine[]>([]);
  const last = useRef<ShownLine["sent"]["sequence"]>(undefined);
  const { organization, deployment } = name;
  const state = useStream(
    `${organization}/${deployment}`,
    (options) =>
      watch<typeof DeploymentService.method.watchDeploymentLogs>(
        PATH,
        {
          ...name,
          follow: true,
          ...(last.current === undefined
            ? { tail: FIRST_LINES }
            : { afterSequence: String(last.current) }),
        },
        options,
      ),
    (sent) => {
      const line = readLine(sent);
      if (last.current === undefined) {
        setFirst(line.sequence);
      }
      last.current = sent.sequence;
      if (arriving.current.push(line) === 1) {
        setTimeout(() => {
          const added = arriving.current;
          arriving.current = [];
          setLines((before) => kept([...before, ...added]));
        }, GATHER_MS);
      }
    },
  );
  // Who follows a log hears nothing of one that is empty; who only reads it hears its end.
  const [isNothing, setNothing] = useState(false);
  useEffect(() => {
    const leaving = new AbortController();
    const options = { signal: leaving.signal, onOpen: () => undefined };
    const asked = { organization, deployment, tail: 1 };
    void (async () => {
      for await (const _ of watch<typeof DeploymentService.method.watchDeploymentLogs>(
        PATH,
        asked,
        options,
      )) {
        return;
      }
      setNothing(true);
    })().catch(() => undefined);
    return () => leaving.abort();
  }, [organization, deployment]);
  const isEmpty = isNothing && lines.length === 0;
  useEffect(() => {
    if (first === undefined || first <= 1) {
      return undefined;
    }
    const leaving = new AbortController();
    setEarlier("reading");
    void (async () => {
      for await (const step of earlierLines({ organization, deployment }, first, leaving.signal)) {
        setLines((before) => kept([...step, ...before]));
      }
      setEarlier("read");
    })().catch(() => {
      if (!leaving.signal.aborted) {
        setEarlier("failed");
      }
    });
    return () => leaving.abort();
  }, [first, organization, deployment]);
  return { lines, state, earlier, isEmpty };
}

const PATH = "/tessera.v1.DeploymentService/WatchDeploymentLogs";

/** The lines before a sequence, those of each step in their order, as many as a page keeps. */
async function* earlierLines(
  name: LogName,
  before: number,
  signal: AbortSignal,
): AsyncGenerator<readonly ShownLine[]> {
  const oldest = before - (MAX_LINES - FIRST_LINES);
  for (let first = before; first > Math.max(oldest, 1); ) {
    const after = first - 1 - STEP_LINES;
    const step: ShownLine[] = [];
    // No line has the sequence 0, after which all would come.
    const from = after > 0 ? { afterSequence: String(after) } : { tail: MAX_LINES };
    const options = { signal, onOpen: () => undefined };
    for await (const sent of watch<typeof DeploymentService.method.watchDeploymentLogs>(
      PATH,
      { ...name, ...from },
      options,
    )) {
      const line = readLine(sent);
      if (line.sequence >= first) {
        break;
      }
      step.push(line);
    }
    if (step.length === 0) {
      return;
    }
    yield step;
    first = step[0]?.sequence ?? 0;
  }
}
