/** The OpenAPI paths of one endpoint: the call and, for a task, submit, status, result and more. */
import type { Reason } from "../../errors.ts";
import type { EndpointManifest, JsonSchema } from "../../protocol/manifest.ts";
import { pathBelow } from "../mounts.ts";
import { requestBody, resultResponse, streamedResponse } from "./endpoint.ts";
import { failures } from "./failures.ts";
import { componentReference } from "./hoist.ts";
import { openEnum } from "./open-enum.ts";
import { parameters } from "./parameters.ts";

/** Reasons for refusing arguments, in every operation that takes them. */
const ARGUMENTS: readonly Reason[] = [
  ...(["ARGUMENTS_INVALID", "REQUEST_INVALID", "BODY_MALFORMED", "ENDPOINT_NOT_FOUND"] as const),
  ...(["BODY_TOO_LARGE", "CONTENT_TYPE_UNSUPPORTED"] as const),
];

/** Reasons why no worker can take the call now. */
const NOT_NOW: readonly Reason[] = [
  ...(["QUEUE_FULL", "DEPLOYMENT_STOPPED", "DEPLOYMENT_FAILED"] as const),
];

const CALL: readonly Reason[] = [
  ...ARGUMENTS,
  ...NOT_NOW,
  ...(["NO_WORKER", "CALL_FAILED", "WORKER_LOST", "OUTPUT_INVALID"] as const),
  ...(["RESULT_TOO_LARGE", "CALL_TIMEOUT"] as const),
];

const CALL_OF_TASK: readonly Reason[] = [
  ...ARGUMENTS,
  ...NOT_NOW,
  ...(["IDEMPOTENCY_KEY_REUSED", "TOO_MANY_WAITING", "TASK_FAILED", "TASK_CANCELLED"] as const),
  "CALL_TIMEOUT",
];

const SUBMIT: readonly Reason[] = [
  ...ARGUMENTS,
  ...NOT_NOW,
  ...(["ENDPOINT_NOT_A_TASK", "IDEMPOTENCY_KEY_REUSED", "TASK_FAILED", "TASK_CANCELLED"] as const),
];

const TASK: readonly Reason[] = ["REQUEST_INVALID", "TASK_NOT_FOUND"];

const GET: readonly Reason[] = [
  ...TASK,
  ...(["TASK_NOT_FINISHED", "TASK_CANCELLED", "TASK_FAILED", "TOO_MANY_WAITING"] as const),
];

const CANCEL: readonly Reason[] = [
  ...TASK,
  ...(["BODY_MALFORMED", "TASK_ALREADY_STARTED", "TASK_FINISHED"] as const),
];

const RETRY: readonly Reason[] = [
  ...TASK,
  ...NOT_NOW,
  ...(["BODY_MALFORMED", "TASK_NOT_FINISHED", "IDEMPOTENCY_KEY_REUSED"] as const),
];

const STREAM: readonly Reason[] = [
  ...TASK,
  ...(["TASK_RESTARTED", "TASK_CANCELLED", "TASK_FAILED", "TOO_MANY_WAITING"] as const),
];

/** All paths of an endpoint. `authorization`: calls need a token. */
export function endpointPaths(endpoint: EndpointManifest, authorization: boolean) {
  const { name, kind, description, stream } = endpoint;
  const streams = stream !== undefined && kind === "api";
  const callSummary = streams ? `Call ${name} and stream its result` : `Call ${name}`;
  const answer = streams ? streamedResponse(endpoint) : resultResponse(endpoint);
  const call = {
    operationId: name,
    tags: [name],
    summary: kind === "api" ? callSummary : `Run ${name} and wait for it`,
    ...(description ? { description } : {}),
    ...(kind === "task" ? { parameters: parameters("idempotencyKey", "keyHeader") } : {}),
    requestBody: requestBody(endpoint),
    responses: {
      200: kind === "task" ? replayable(answer) : answer,
      ...failures(kind === "task" ? CALL_OF_TASK : CALL, authorization),
    },
  };
  return {
    [pathBelow(endpoint)]: { post: call },
    ...(kind === "task" ? taskPaths(describedTask(endpoint), authorization) : {}),
  };
}

/** The tag of the tasks of a mounted server, by its path. */
export function tagOfQueue(path: string): string {
  return `tasks of the server at ${path}`;
}

/**
 * The paths of the tasks of a mounted server, whose requests they are. `number`: of the server in
 * its service, from 1.
 */
export function queuePaths(endpoint: EndpointManifest, number: number, authorization: boolean) {
  const any = { "*/*": { schema: {} } };
  const described = {
    ...{ endpoint, name: `server-${number}`, tag: tagOfQueue(endpoint.name) },
    submits: "Queue a request to the server",
    about:
      "Stores `POST` of the path before `/submit`, which may be any path of the server, with its query and body. A request of any method is stored as it is by the header `Tessera-Queue: submit`. Answers as soon as the task is stored, or with the result if `Prefer` asks.",
    body: { content: any },
    result: {
      description: "What the server answered, with its own status.",
      content: any,
    },
  };
  return taskPaths(described, authorization);
}

/** What is said of the tasks of an endpoint. */
interface DescribedTask {
  readonly endpoint: EndpointManifest;
  /** The beginning of the ids of its operations. */
  readonly name: string;
  readonly tag: string;
  readonly submits: string;
  readonly about: string;
  readonly body: JsonSchema;
  readonly result: JsonSchema;
}

function describedTask(endpoint: EndpointManifest): DescribedTask {
  const { name } = endpoint;
  return {
    ...{ endpoint, name, tag: name, submits: `Queue a call of ${name}` },
    about: "Answers as soon as the task is stored, or with the result if `Prefer` asks.",
    body: requestBody(endpoint),
    result: resultResponse(endpoint),
  };
}

function taskPaths(described: DescribedTask, authorization: boolean) {
  const { endpoint, name, tag, body, result } = described;
  const operation = (verb: string, summary: string, rest: JsonSchema) => ({
    operationId: `${name}.${verb}`,
    tags: [tag],
    summary,
    ...rest,
  });
  const submit = operation("submit", described.submits, {
    description: described.about,
    parameters: [
      ...parameters("idempotencyKey", "replay", "prefer"),
      ...parameters("priority", "runAt", "delay", "startBy", "startWithin", "retention", "tags"),
      ...parameters("key", "keyHeader"),
    ],
    requestBody: body,
    responses: {
      200: replayable(result),
      202: acceptedResponse(),
      ...failures(SUBMIT, authorization),
    },
  });
  const status = operation("status", "Read the state of a task", {
    parameters: parameters("taskId", "waitForChange", "access"),
    responses: {
      200: json("The task.", "tessera.Task"),
      ...failures([...TASK, "TOO_MANY_WAITING"], authorization),
    },
  });
  const get = operation("get", "Fetch the result of a task", {
    description: "Reading a result does not consume it. Before the end of the task it is refused.",
    parameters: parameters("taskId", "waitForEnd", "access"),
    responses: {
      200: result,
      ...failures(GET, authorization),
    },
  });
  const args = operation("arguments", "Read the arguments of a task", {
    description: "The arguments that it was submitted with, or with `file` one of their files.",
    parameters: parameters("taskId", "argumentFile"),
    responses: { 200: argumentsResponse(), ...failures(TASK, authorization) },
  });
  const events = operation("events", "Follow a task", {
    description:
      "Server-Sent Events named `state`, `progress`, `log` and `piece`, until the task has ended. The `EventSource` of browsers sends no token: give it the URL that `POST …/access` answers. It connects again after the end, so close it at the event `end`.",
    parameters: parameters("taskId", "lastEventId", "lastEventIdInQuery", "access"),
    responses: { 200: eventStream(), ...failures([...TASK, "TOO_MANY_WAITING"], authorization) },
  });
  return {
    [pathBelow(endpoint, "submit")]: { post: submit },
    [pathBelow(endpoint, "status")]: { get: status },
    [pathBelow(endpoint, "get")]: { get },
    [pathBelow(endpoint, "arguments")]: { get: args },
    [pathBelow(endpoint, "cancel")]: bothMethods("post", cancelOperation(operation, authorization)),
    [pathBelow(endpoint, "retry")]: bothMethods("put", retryOperation(operation, authorization)),
    [pathBelow(endpoint, "access")]: { post: accessOperation(operation, authorization) },
    [pathBelow(endpoint, "events")]: { get: events },
    ...(endpoint.stream && {
      [pathBelow(endpoint, "stream")]: { get: streamOperation(operation, endpoint, authorization) },
    }),
  };
}

type Operation = (verb: string, summary: string, rest: JsonSchema) => JsonSchema;

function cancelOperation(operation: Operation, authorization: boolean): JsonSchema {
  return operation("cancel", "Cancel a task", {
    description: "A task that has started is cancelled only with `abort`.",
    parameters: parameters("taskIdOrBody", "abort"),
    requestBody: taskIdBody({ abort: { type: "boolean", default: false } }),
    responses: {
      200: json("The task is cancelled.", "tessera.CancelledTask"),
      ...failures(CANCEL, authorization),
    },
  });
}

function accessOperation(operation: Operation, authorization: boolean): JsonSchema {
  return operation("access", "Let a browser read a task", {
    description:
      "Makes an access of the task: a text that opens `GET` of its `/events`, `/stream`, `/status` and `/get` for 15 minutes, in the query (`access`), where the header `Authorization` cannot be sent. It opens nothing else, and ends with the token that it was made with. Anyone who has it may read the task.",
    parameters: parameters("taskIdOrBody"),
    requestBody: taskIdBody({}),
    responses: {
      200: json("The access.", "tessera.TaskAccess"),
      ...failures([...TASK, "BODY_MALFORMED"], authorization),
    },
  });
}

function streamOperation(
  operation: Operation,
  endpoint: EndpointManifest,
  authorization: boolean,
): JsonSchema {
  return operation("stream", "Stream the result of a task", {
    description:
      "The pieces that the task has given, then new ones as they come, until it has ended. Events go on after the piece that `Last-Event-ID` names; an event `restart` says that the task began anew and the pieces before are void.",
    parameters: parameters("taskId", "lastPieceId", "lastPieceIdInQuery", "access"),
    responses: { 200: streamedResponse(endpoint), ...failures(STREAM, authorization) },
  });
}

function retryOperation(operation: Operation, authorization: boolean): JsonSchema {
  return operation("retry", "Run a finished task again", {
    description: "Queues a new task with the same arguments; the original stays as it is.",
    parameters: parameters("taskIdOrBody", "retryKey", "replay"),
    requestBody: taskIdBody({}),
    responses: { 202: acceptedResponse(), ...failures(RETRY, authorization) },
  });
}

/** POST and PUT mean the same here; the second only needs an id of its own. */
function bothMethods(main: "post" | "put", operation: JsonSchema) {
  const other = main === "post" ? "put" : "post";
  return {
    [main]: operation,
    [other]: { ...operation, operationId: `${operation.operationId}.${other}` },
  };
}

function taskIdBody(properties: JsonSchema): JsonSchema {
  const taskId = { type: "string", minLength: 1, maxLength: 64 };
  const schema = {
    type: "object",
    properties: { task_id: taskId, ...properties },
    additionalProperties: false,
  };
  return { required: false, content: { "application/json": { schema } } };
}

function argumentsResponse(): JsonSchema {
  const content = {
    "application/json": { schema: { $ref: componentReference("tessera.TaskArguments") } },
    "*/*": { schema: {} },
  };
  return { description: "The arguments, or the file with its own type and name.", content };
}

function acceptedResponse(): JsonSchema {
  return replayable({
    ...json("The task is stored and will run.", "tessera.SubmittedTask"),
    headers: {
      Location: {
        description: "Where the task's status is.",
        schema: { type: "string", format: "uri-reference" },
      },
    },
  });
}

/** A response with a header that says whether it repeats that of an earlier task. */
function replayable(response: JsonSchema): JsonSchema {
  return {
    ...response,
    headers: {
      ...(response.headers as JsonSchema | undefined),
      "Idempotent-Replayed": {
        description: "`true` when an earlier task with the same key is given again.",
        schema: openEnum(["true"]),
      },
    },
  };
}

function eventStream(): JsonSchema {
  const data = {
    type: "string",
    contentMediaType: "application/json",
    contentSchema: {
      anyOf: [
        { $ref: componentReference("tessera.TaskEvent") },
        { $ref: componentReference("tessera.Error") },
        { type: "object", maxProperties: 0 },
      ],
    },
  };
  const event = openEnum(["state", "progress", "log", "piece", "end", "error"]);
  const properties = { id: { type: "string" }, event, data };
  const example = {
    id: "2",
    event: "progress",
    data: '{"sequence":2,"time":"2026-01-31T12:00:01Z","attempt":1,"progress":{"fraction":0.5,"message":"half way"}}',
  };
  return {
    description:
      "The events of the task. The `data` of each is JSON of the schema `tessera.TaskEvent`; that of the last, `end`, is empty, and that of `error` a `tessera.Error`.",
    content: { "text/event-stream": { schema: { type: "object", properties }, example } },
  };
}

function json(description: string, component: string): JsonSchema {
  const schema = { $ref: componentReference(component) };
  return { description, content: { "application/json": { schema } } };
}
