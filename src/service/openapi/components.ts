/** The OpenAPI components that all operations of the data plane share: schemas, parameters, errors. */
import { CATALOGUE } from "../../errors.ts";
import type { JsonSchema } from "../../protocol/manifest.ts";
import { openEnum } from "./open-enum.ts";

const TASK_ID = "019a0b5e-7c1d-800f-8f21-5b0c6f1d2e3a";
const CREATED = "2026-01-31T12:00:00.000Z";
const EXPIRES = "2026-02-01T12:00:00.000Z";

const time = (description: string) => ({ type: "string", format: "date-time", description });
const timeOrNull = (description: string) => ({
  type: ["string", "null"],
  format: "date-time",
  description,
});

const status = {
  ...openEnum(["queued", "running", "success", "failure", "cancelled"]),
  description: "The state of the task; the last three are final.",
};

const progress = {
  type: "object",
  description: "How far the function says it has come.",
  required: ["fraction"],
  properties: {
    fraction: { type: "number", minimum: 0, maximum: 1 },
    message: { type: "string", description: "What it is doing; may be empty." },
  },
};

const failure = {
  type: "object",
  description: "Why the task failed, or one of its attempts.",
  required: ["reason", "code", "message"],
  properties: {
    reason: {
      ...openEnum([
        "error",
        "timeout",
        "expired",
        "worker_lost",
        "out_of_memory",
        "node_lost",
        "interrupted",
      ]),
    },
    code: {
      type: "string",
      description: "The code that `get` answers with.",
      examples: ["internal"],
    },
    message: { type: "string", description: "What the function threw, or what happened to it." },
  },
};

const attempt = {
  type: "object",
  description: "One execution of the task.",
  required: ["number", "worker", "node", "started_at"],
  properties: {
    number: { type: "integer", minimum: 1, description: "From 1, in the order of the attempts." },
    worker: { type: "string", description: "The worker that ran it." },
    node: { type: "string", description: "The node of that worker; may be empty." },
    started_at: time("When it began."),
    ended_at: timeOrNull("When it ended; null while it runs."),
    failure: { ...failure, type: ["object", "null"], description: "Why it ended, unless well." },
    retry_at: timeOrNull("The earliest start of the next attempt, unless that was at once."),
    peak_memory_bytes: {
      type: ["integer", "null"],
      description: "The most memory that its worker held while it ran, where that was measured.",
    },
  },
};

const taskId = {
  type: "string",
  maxLength: 64,
  description: "The task's id, time-ordered and unguessable.",
};

const place = {
  queue_position: {
    type: "integer",
    minimum: 0,
    maximum: 1_000,
    description:
      "How many tasks would start before this one, up to 1,000; there while it waits for a worker.",
  },
  estimated_start: time("When it can be expected to start, where that can be said."),
};

/** Of a status only. */
const waiting = {
  ...place,
  waits_for: {
    type: "string",
    description: "The worker that it waits for, where none that could run it is there or starts.",
  },
  queued_reason: {
    type: "object",
    description: "Why it is queued, as the node that answers knows it then; there while it is.",
    required: ["code", "message"],
    properties: {
      code: openEnum([
        ...["scheduled", "retrying", "stopped", "shutting_down", "storage_unavailable"],
        ...["preparing", "revision_failed", "endpoint_missing", "no_matching_worker"],
        ...["worker_starting", "worker_crashes", "gpu_taken", "no_room", "no_worker_yet"],
        ...["worker_unresponsive", "alone", "batching", "workers_busy", "deployment_limit"],
        ...["starts_now", "on_other_nodes", "paused", "key_limit", "key_rate"],
      ]),
      message: { type: "string", description: "A sentence for people, without its full stop." },
    },
  },
};

export const SCHEMAS: { readonly [name: string]: JsonSchema } = {
  "tessera.Error": {
    type: "object",
    required: ["code", "message"],
    properties: {
      code: { type: "string", description: "A Connect code.", examples: ["not_found"] },
      message: { type: "string", description: "What was wrong, and what to do." },
      details: {
        type: "array",
        items: { $ref: "#/components/schemas/tessera.ErrorDetail" },
      },
    },
  },
  "tessera.ErrorDetail": {
    type: "object",
    description: "One `google.rpc` message; `debug` is its content as JSON.",
    required: ["type"],
    properties: {
      type: {
        type: "string",
        examples: ["google.rpc.ErrorInfo", "google.rpc.BadRequest", "google.rpc.RetryInfo"],
      },
      value: { type: "string", description: "The message in base64." },
      debug: {
        type: "object",
        properties: {
          reason: openEnum(Object.keys(CATALOGUE)),
          domain: { type: "string" },
          metadata: { type: "object", additionalProperties: { type: "string" } },
          fieldViolations: {
            type: "array",
            items: {
              type: "object",
              properties: { field: { type: "string" }, description: { type: "string" } },
            },
          },
        },
      },
    },
  },
  "tessera.SubmittedTask": {
    type: "object",
    description: "A task that was accepted and stored.",
    required: ["task_id", "status", "created_at", "expires_at"],
    properties: {
      task_id: taskId,
      status,
      created_at: time("When it was accepted."),
      expires_at: time("When the task and its result are deleted."),
      retry_of: { type: ["string", "null"], description: "The task that this one retries." },
      ...place,
    },
    examples: [{ task_id: TASK_ID, status: "queued", created_at: CREATED, expires_at: EXPIRES }],
  },
  "tessera.Task": {
    type: "object",
    description: "A task and the state it is in.",
    required: ["task_id", "status", "created_at", "expires_at"],
    properties: {
      task_id: taskId,
      status,
      created_at: time("When it was accepted."),
      started_at: timeOrNull("When the last attempt began."),
      finished_at: timeOrNull("When it reached its final state."),
      expires_at: time("When the task and its result are deleted."),
      attempt: { type: "integer", minimum: 0, description: "The last attempt, from 1; 0 before." },
      priority: { type: "integer", description: "Tasks of a higher priority start first." },
      run_at: timeOrNull("When it may be started first, unless that was at once."),
      start_by: timeOrNull("It fails when it has not been started by then."),
      progress: { ...progress, type: ["object", "null"] },
      retry_of: { type: ["string", "null"], description: "The task that this one retries." },
      key: { type: "string", description: "Whose it is among the callers; absent: nobody's." },
      tags: {
        type: "array",
        description:
          "Its tags, in the order in which they were given; lists can be filtered by them.",
        items: { type: "string" },
      },
      failure: { ...failure, type: ["object", "null"] },
      attempts: {
        type: "array",
        description:
          "Its attempts, oldest first: of those that returned to the queue, the first 5 and the last 15, and the running or last one.",
        items: attempt,
      },
      ...waiting,
    },
    examples: [
      {
        task_id: TASK_ID,
        status: "running",
        created_at: CREATED,
        started_at: "2026-01-31T12:00:00.020Z",
        expires_at: EXPIRES,
        attempt: 1,
        progress: { fraction: 0.5, message: "half way" },
      },
    ],
  },
  "tessera.TaskArguments": {
    type: "object",
    description: "The arguments that a task was submitted with.",
    required: ["arguments", "files"],
    properties: {
      arguments: {
        type: "object",
        description:
          "The arguments by name. A file stands as its number, a list of files as their numbers.",
      },
      files: {
        type: "array",
        description: "The files in them, by their numbers from 0.",
        items: {
          type: "object",
          required: ["argument", "filename", "content_type", "size"],
          properties: {
            argument: { type: "string", description: "Empty if the service no longer has it." },
            filename: { type: "string", description: "As it was sent; may be empty." },
            content_type: { type: "string" },
            size: { type: "integer", minimum: 0, description: "In bytes." },
          },
        },
      },
    },
    examples: [{ arguments: { texts: ["One. Two."] }, files: [] }],
  },
  "tessera.TaskAccess": {
    type: "object",
    description: "Opens reading of one task.",
    required: ["access", "expires_at", "path"],
    properties: {
      access: { type: "string", description: "A secret." },
      expires_at: time("When it can no longer be used."),
      path: {
        type: "string",
        format: "uri-reference",
        description:
          "The events of the task with it, relative to this server. In place of `events` it may be `stream`, `status` or `get`.",
      },
      url: {
        type: "string",
        format: "uri",
        description: "The same as a whole URL, where the server knows its own.",
      },
    },
    examples: [
      {
        access: "tsra_AQJpffqE…",
        expires_at: "2026-01-31T12:15:00.000Z",
        path: `/summarize_batch/events?task_id=${TASK_ID}&access=tsra_AQJpffqE…`,
      },
    ],
  },
  "tessera.CancelledTask": {
    type: "object",
    required: ["task_id", "status"],
    properties: { task_id: taskId, status },
    examples: [{ task_id: TASK_ID, status: "cancelled" }],
  },
  "tessera.TaskEvent": {
    type: "object",
    description: "The data of one event; the name of the event says which member is there.",
    required: ["sequence", "attempt"],
    properties: {
      sequence: {
        oneOf: [{ type: "integer" }, { type: "string" }],
        description:
          "Its number in the log, with which the event's id begins. That of a piece is the number of the event before it.",
      },
      time: time("When it happened; absent for a piece."),
      attempt: { type: "integer", minimum: 0 },
      state: {
        type: "object",
        description: "The task came into another state.",
        required: ["status"],
        properties: {
          status,
          failure,
          retry_at: time("With queued: the earliest start of the next attempt."),
        },
      },
      progress,
      log: {
        type: "object",
        description: "The function wrote a log line.",
        required: ["level", "message"],
        properties: {
          level: openEnum(["debug", "info", "warn", "error"]),
          message: { type: "string" },
          fields: { type: "object" },
        },
      },
      piece: {
        type: "object",
        description:
          "The function gave a piece of its result: `value` is a JSON value or a text, `data` are bytes in base64. Those of a later attempt replace all before.",
        required: ["number"],
        properties: {
          number: { type: "integer", minimum: 1, description: "Its number in its attempt." },
          value: {},
          content_type: { type: "string" },
          data: { type: "string", contentEncoding: "base64" },
        },
      },
    },
  },
};
