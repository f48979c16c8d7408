/**
 * Validates the messages of a worker. User code runs in the same process as the
 * worker's program, so any message may be forged. A validated message has the
 * types and members that the protocol declares; nothing more is guaranteed.
 */
import type { LogLevel, WorkerMessage } from "../protocol/messages.ts";
import { readManifest } from "./check-manifest.ts";
import { readMetrics } from "./check-metrics.ts";
import { readResults } from "./check-results.ts";
import { type Fields, isFields } from "./untrusted.ts";

const LEVELS: ReadonlySet<unknown> = new Set<LogLevel>(["debug", "info", "warn", "error"]);

/** A copy of the message; undefined for anything outside the protocol. */
export function readWorkerMessage(message: unknown): WorkerMessage | undefined {
  if (!isFields(message)) {
    return undefined;
  }
  switch (message.type) {
    case "ready": {
      const manifest = readManifest(message.manifest);
      return manifest && { type: "ready", manifest };
    }
    case "refused":
      return typeof message.message === "string"
        ? { type: "refused", message: message.message }
        : undefined;
    case "results": {
      const results = readResults(message.results);
      return results && { type: "results", results };
    }
    case "progress":
      return readProgress(message);
    case "log":
      return readLog(message);
    case "metrics":
      return readMetrics(message);
    case "pong":
      return typeof message.sequence === "number"
        ? { type: "pong", sequence: message.sequence }
        : undefined;
    default:
      return undefined;
  }
}

function readProgress({ id, fraction, message }: Fields): WorkerMessage | undefined {
  return isCallId(id) &&
    typeof fraction === "number" &&
    fraction >= 0 &&
    fraction <= 1 &&
    typeof message === "string"
    ? { type: "progress", id, fraction, message }
    : undefined;
}

function readLog({ id, level, message, fieldsJson }: Fields): WorkerMessage | undefined {
  if (!isCallId(id) || !LEVELS.has(level) || typeof message !== "string") {
    return undefined;
  }
  const line = { type: "log" as const, id, level: level as LogLevel, message };
  if (fieldsJson === undefined) {
    return line;
  }
  return isJsonObject(fieldsJson) ? { ...line, fieldsJson } : undefined;
}

function isCallId(id: unknown): id is number {
  return Number.isSafeInteger(id);
}

function isJsonObject(text: unknown): text is string {
  try {
    return typeof text === "string" && isFields(JSON.parse(text));
  } catch {
    // Not JSON.
    return false;
  }
}
