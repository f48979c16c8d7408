/** Report: lines, progress and metrics of calls, in a stream of their own. */
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  ReportedLine,
  ReportRequest,
  WorkerService,
} from "../../../gen/tessera/v1/worker_pb.js";
import { problem } from "../../errors.ts";
import { readExposed, readMetrics } from "../../pool/checks/check-metrics.ts";
import { isFields, parseJson } from "../../pool/checks/untrusted.ts";
import { Attachments } from "../../protocol/attachments.ts";
import { type LogLevel, MAX_LOG_TEXT_CHARACTERS } from "../../protocol/messages.ts";
import { workerToken } from "./caller.ts";
import type { WorkerSession, WorkerSessions } from "./remote-sessions.ts";

/** Values in the metrics of one report. */
const MAX_METRICS_VALUES = 50_000;

const LEVELS: ReadonlySet<string> = new Set<LogLevel>(["debug", "info", "warn", "error"]);
const STREAMS = ["stdout", "stderr", "node"] as const;

export function report(sessions: WorkerSessions): ServiceImpl<typeof WorkerService>["report"] {
  return async (requests, { values }) => {
    const principal = workerToken(values);
    let session: WorkerSession | undefined;
    for await (const request of requests) {
      session ??= sessions.get(request.session, principal);
      if (session.worker.ended) {
        break;
      }
      const fault = take(request, session);
      if (fault !== undefined) {
        session.worker.kill(fault);
        throw problem("REQUEST_INVALID", `the worker broke the protocol: ${fault}`);
      }
      session.reports.taken(Number(request.sequence));
    }
    return {};
  };
}

/** Takes a report. Returns what is wrong with a forged one. */
function take(request: ReportRequest, session: WorkerSession): string | undefined {
  const { worker, reports } = session;
  worker.heard();
  for (const line of request.lines) {
    if (reports.admits(line.message.length + line.fieldsJson.length)) {
      takeLine(line, session);
    } else {
      worker.execution(Number(line.id))?.skipLine({ skipped: line.skipped });
    }
  }
  if (request.droppedLines > 0n) {
    reports.output(`${request.droppedLines} lines were dropped at the worker`, "node");
  }
  for (const { id, fraction, message } of request.progress) {
    worker.execution(Number(id))?.progress(fraction, message);
  }
  return request.metricsJson === "" ? undefined : takeMetrics(request.metricsJson, session);
}

function takeLine(line: ReportedLine, { worker, reports }: WorkerSession): void {
  const { id, level, skipped, stream } = line;
  const message = line.message.slice(0, MAX_LOG_TEXT_CHARACTERS);
  if (!LEVELS.has(level)) {
    const found = STREAMS.find((each) => each === stream) ?? "stdout";
    reports.output(message, found);
    return;
  }
  const fieldsJson = isJsonObject(line.fieldsJson) ? line.fieldsJson : undefined;
  worker.execution(Number(id))?.log({
    level: level as LogLevel,
    message,
    ...(fieldsJson !== undefined && { fieldsJson }),
    ...(skipped > 0 && { skipped }),
  });
}

function takeMetrics(text: string, { worker }: WorkerSession): string | undefined {
  const fields = parseJson(Buffer.from(text), MAX_METRICS_VALUES);
  const metrics = isFields(fields)
    ? readMetrics(fields, new Attachments(Buffer.alloc(0), { begin: 0, end: 0 }, 0))
    : undefined;
  const exposed = isFields(fields) ? readExposed(fields) : undefined;
  return metrics && exposed
    ? worker.counts?.take({ ...metrics, ...exposed })
    : "it sent metrics that the protocol does not have";
}

function isJsonObject(text: string): boolean {
  try {
    return text.length <= MAX_LOG_TEXT_CHARACTERS && isFields(JSON.parse(text));
  } catch {
    return false;
  }
}
