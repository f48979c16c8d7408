/** The exports of the deployment client, which needs only `fetch`. */
export type { FileLike } from "./arguments.ts";
export { createClient, type DeploymentClientOptions } from "./client.ts";
export { type CallOptions, type ClientOptions, Connection } from "./connection.ts";
export type { TimeSpan } from "./duration.ts";
export {
  type ApiEndpoint,
  createEndpoint,
  type EndpointFacts,
  type StreamingEndpoint,
  type SubmitOptions,
  type TaskEndpoint,
} from "./endpoint.ts";
export * from "./errors.ts";
export { clientSource } from "./generate.ts";
export { pythonClientSource } from "./generate-python.ts";
export {
  type CancelOptions,
  RemoteTask,
  type RetryOptions,
  type StatusOptions,
  type TaskReading,
  type TaskUpdate,
  type WaitOptions,
} from "./remote-task.ts";
export type { OpenResult, ResultForm } from "./result.ts";
export {
  type FlatSchema,
  factsOf,
  fetchSchema,
  type SchemaRoute,
  type ServiceSchema,
} from "./schema.ts";
export {
  type AttemptState,
  hasEnded,
  type Progress,
  type TaskFault,
  type TaskLogEvent,
  type TaskState,
  type TaskStatusValue,
  type WhyQueued,
} from "./state.ts";
export type { TaskInput, TaskInputFile } from "./task-input.ts";
export type { TaskStreamOptions } from "./task-pieces.ts";
export type { AnyService, DeploymentClient, EndpointTypes } from "./typing.ts";
export type { WatchOptions } from "./watch.ts";
