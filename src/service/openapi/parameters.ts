/** The OpenAPI parameters of the data plane, as components and as references to them. */
import type { JsonSchema } from "../../protocol/manifest.ts";

const wait = {
  name: "wait",
  in: "query",
  schema: { type: "number", minimum: 0, maximum: 60 },
  example: 30,
};

/** The number of an event. */
const EVENT_ID = { type: "string", pattern: "^[0-9]{1,15}(-[0-9]{1,9}-[0-9]{1,15})?$" };

const PIECE_ID = { type: "string", pattern: "^[0-9]{1,9}-[0-9]{1,15}$" };

const DEFINITIONS = {
  taskId: {
    name: "task_id",
    in: "query",
    required: true,
    description: "The id that submit answered.",
    schema: { type: "string", minLength: 1, maxLength: 64 },
  },
  access: {
    name: "access",
    in: "query",
    description:
      "The access of this task, in place of a token, for readers that cannot set the header `Authorization`, such as `EventSource`.",
    schema: { type: "string", pattern: "^tsra_[A-Za-z0-9_-]+$" },
  },
  taskIdOrBody: {
    name: "task_id",
    in: "query",
    description: "The id that submit answered. It may stand in the body instead.",
    schema: { type: "string", minLength: 1, maxLength: 64 },
  },
  waitForChange: {
    ...wait,
    description: "Seconds to wait for the next change before answering.",
  },
  waitForEnd: {
    ...wait,
    description: "Seconds to wait for the end of the task before answering.",
  },
  argumentFile: {
    name: "file",
    in: "query",
    description: "The number of a file, its place in `files`: answers with that file.",
    schema: { type: "integer", minimum: 0, maximum: 999_999_999 },
  },
  abort: {
    name: "abort",
    in: "query",
    description:
      "Also cancel a task that is running: its signal aborts, then its worker is killed.",
    schema: { type: "boolean", default: false },
  },
  idempotencyKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "The same key with the same body gives the first task again, unless that failed, was cancelled or expired: then it begins a new one. With another body it is refused.",
    schema: { type: "string", maxLength: 255 },
  },
  retryKey: {
    name: "Idempotency-Key",
    in: "header",
    description:
      "The same key for the same task gives the first retry again, unless that failed, was cancelled or expired: then it begins a new one. For another task it is refused.",
    schema: { type: "string", maxLength: 255 },
  },
  replay: {
    name: "replay",
    in: "query",
    description: "`always`: the key gives its first task again however that ended.",
    schema: { type: "string", enum: ["always"] },
  },
  prefer: {
    name: "Prefer",
    in: "header",
    description:
      "`wait=20`: answer with the result if it is there within that many seconds, at most 60, otherwise with 202.",
    schema: { type: "string", pattern: "^wait=[0-9]+$" },
    example: "wait=20",
  },
  priority: {
    name: "priority",
    in: "query",
    description: "Tasks of a higher priority start first. Default: the endpoint's.",
    schema: { type: "integer", minimum: -100, maximum: 100 },
  },
  runAt: {
    name: "run_at",
    in: "query",
    description: "Do not start it before this time, at most 30 days ahead.",
    schema: { type: "string", format: "date-time" },
  },
  delay: {
    name: "delay",
    in: "query",
    description: "The same as `run_at`, in seconds from now; not both.",
    schema: { type: "number", minimum: 0, maximum: 2_592_000 },
  },
  startBy: {
    name: "start_by",
    in: "query",
    description:
      "Do not start it after this time: a task that still waits then fails with the reason `expired`.",
    schema: { type: "string", format: "date-time" },
  },
  startWithin: {
    name: "start_within",
    in: "query",
    description: "The same as `start_by`, in seconds from now; not both.",
    schema: { type: "number", minimum: 0.001, maximum: 31_536_000 },
  },
  retention: {
    name: "retention",
    in: "query",
    description:
      "How long the task and its result are kept after its end, in seconds, within what the operator allows. Default: the deployment's or the endpoint's.",
    schema: { type: "number", minimum: 1, maximum: 31_536_000 },
  },
  key: {
    name: "key",
    in: "query",
    description:
      "Whose it is among the callers that share the endpoint, such as the id of a customer.",
    schema: { type: "string", minLength: 1, maxLength: 128 },
  },
  keyHeader: {
    name: "Tessera-Key",
    in: "header",
    description:
      "Whose it is among the callers that share the endpoint, such as the id of a customer.",
    schema: { type: "string", minLength: 1, maxLength: 128 },
  },
  tags: {
    name: "tags",
    in: "query",
    description:
      "Words of your own by which the task is found again, such as `customer:42`: at most 10, separated by commas.",
    style: "form",
    explode: false,
    schema: {
      type: "array",
      maxItems: 10,
      uniqueItems: true,
      items: { type: "string", minLength: 1, maxLength: 64 },
    },
  },
  lastEventId: {
    name: "Last-Event-ID",
    in: "header",
    description: "Send only the events after this one.",
    schema: EVENT_ID,
  },
  lastEventIdInQuery: {
    name: "last_event_id",
    in: "query",
    description: "The same, for readers that cannot set the header, which goes before it.",
    schema: EVENT_ID,
  },
  lastPieceId: {
    name: "Last-Event-ID",
    in: "header",
    description: "Send only the pieces after this one: `1-42` is piece 42 of attempt 1.",
    schema: PIECE_ID,
  },
  lastPieceIdInQuery: {
    name: "last_event_id",
    in: "query",
    description: "The same, for readers that cannot set the header, which goes before it.",
    schema: PIECE_ID,
  },
} as const satisfies { readonly [name: string]: JsonSchema };

export const PARAMETERS: { readonly [name: string]: JsonSchema } = DEFINITIONS;

/** References to shared parameters. */
export function parameters(...names: (keyof typeof DEFINITIONS)[]): JsonSchema[] {
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}
