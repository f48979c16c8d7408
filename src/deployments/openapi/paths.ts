/** The paths of one endpoint: the call, and for a task its whole life. */
import type { EndpointManifest, JsonSchema } from "../../sdk/manifest.ts";
import { requestBody, resultResponse } from "./endpoint.ts";
import { type FailureStatus, failures } from "./failures.ts";
import { componentReference } from "./hoist.ts";
import { parameters } from "./parameters.ts";

const CALL_FAILURES: FailureStatus[] = [400, 413, 415, 429, 500, 503, 504];
const SUBMIT_FAILURES: FailureStatus[] = [400, 409, 413, 415, 429, 503];

/** All paths of an endpoint. `authorization`: calls need a token. */
export function endpointPaths(endpoint: EndpointManifest, authorization: boolean) {
  const { name, kind, description } = endpoint;
  const call = {
    operationId: name,
    tags: [name],
    summary: kind === "api" ? `Call ${name}` : `Run ${name} and wait for it`,
    ...(description ? { description } : {}),
    requestBody: requestBody(endpoint),
    responses: { 200: resultResponse(endpoint), ...failures(CALL_FAILURES, authorization) },
  };
  return {
    [`/${name}`]: { post: call },
    ...(kind === "task" ? taskPaths(endpoint, authorization) : {}),
  };
}

function taskPaths(endpoint: EndpointManifest, authorization: boolean) {
  const { name } = endpoint;
  const operation = (verb: string, summary: string, rest: JsonSchema) => ({
    operationId: `${name}.${verb}`,
    tags: [name],
    summary,
    ...rest,
  });
  const submit = operation("submit", `Queue a call of ${name}`, {
    description: "Answers as soon as the task is stored, or with the result if `Prefer` asks.",
    parameters: [
      ...parameters("idempotencyKey", "prefer"),
      ...parameters("priority", "runAt", "delay", "startBy", "startWithin"),
    ],
    requestBody: requestBody(endpoint),
    responses: {
      200: resultResponse(endpoint),
      202: acceptedResponse(),
      ...failures([...SUBMIT_FAILURES, 500], authorization),
    },
  });
  const status = operation("status", "Read the state of a task", {
    parameters: parameters("taskId", "waitForChange"),
    responses: {
      200: json("The task.", "tessera.Task"),
      ...failures([404, 429, 503], authorization),
    },
  });
  const get = operation("get", "Fetch the result of a task", {
    description: "Reading a result does not consume it. Before the end of the task it is refused.",
    parameters: parameters("taskId", "waitForEnd"),
    responses: {
      200: resultResponse(endpoint),
      ...failures([400, 404, 429, 500, 503], authorization),
    },
  });
  const events = operation("events", "Follow a task", {
    description:
      "Server-Sent Events named `state`, `progress` and `log`, until the task has ended.",
    parameters: parameters("taskId", "lastEventId"),
    responses: { 200: eventStream(), ...failures([404, 429, 503], authorization) },
  });
  return {
    [`/${name}/submit`]: { post: submit },
    [`/${name}/status`]: { get: status },
    [`/${name}/get`]: { get },
    [`/${name}/cancel`]: bothMethods("post", cancelOperation(operation, authorization)),
    [`/${name}/retry`]: bothMethods("put", retryOperation(operation, authorization)),
    [`/${name}/events`]: { get: events },
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
      ...failures([400, 404, 409, 503], authorization),
    },
  });
}

function retryOperation(operation: Operation, authorization: boolean): JsonSchema {
  return operation("retry", "Run a finished task again", {
    description: "Queues a new task with the same arguments; the original stays as it is.",
    parameters: parameters("taskIdOrBody"),
    requestBody: taskIdBody({}),
    responses: { 202: acceptedResponse(), ...failures([400, 404, 429, 503], authorization) },
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
  const schema = { type: "object", properties: { task_id: { type: "string" }, ...properties } };
  return { required: false, content: { "application/json": { schema } } };
}

function acceptedResponse(): JsonSchema {
  return {
    ...json("The task is stored and will run.", "tessera.SubmittedTask"),
    headers: {
      Location: {
        description: "Where the task's status is.",
        schema: { type: "string", format: "uri-reference" },
      },
      "Idempotent-Replayed": {
        description: "`true` when an earlier task with the same key is given again.",
        schema: { type: "string", enum: ["true"] },
      },
    },
  };
}

function eventStream(): JsonSchema {
  const example =
    'id: 2\nevent: progress\ndata: {"sequence":2,"time":"2026-01-31T12:00:01Z","attempt":1,' +
    '"progress":{"fraction":0.5,"message":"half way"}}\n\n';
  const description = "The `data` of each event is JSON of the schema `tessera.TaskEvent`.";
  return {
    description: `The events of the task. ${description}`,
    content: { "text/event-stream": { schema: { type: "string", description }, example } },
  };
}

function json(description: string, component: string): JsonSchema {
  const schema = { $ref: componentReference(component) };
  return { description, content: { "application/json": { schema } } };
}
