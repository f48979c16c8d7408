/** The SDK for authors of services: `import { service, api, task, file } from "tessera-platform"`. */

export type { Duration } from "../protocol/duration.ts";
export {
  type FileDescription,
  fileFromPath,
  fileFromStream,
  filePath,
} from "../protocol/file-place.ts";
export type { JsonSchema } from "../protocol/manifest.ts";
export type { BatchOptions } from "./batch.ts";
export type {
  BatchContext,
  CallRequest,
  CallResponse,
  LogFields,
  SetupContext,
  TaskContext,
  TaskLog,
} from "./context.ts";
export {
  type ArgumentsOf,
  api,
  type BatchDecorator,
  type Batched,
  type BatchFunction,
  type CallTypes,
  type Endpoint,
  type EndpointDecorator,
  type EndpointFunction,
  type EndpointOptions,
  type MethodOptions,
  type ResultOf,
  task,
} from "./endpoint.ts";
export { BadInput, EndpointError, type ErrorCode, ServiceDefinitionError } from "./errors.ts";
export {
  type Bytes,
  type FileListOptions,
  type FileListSchema,
  type FileOptions,
  type FileSchema,
  file,
  type OptionalSchema,
} from "./file.ts";
export {
  type Aggregator,
  type Counter,
  type CounterDeclaration,
  counter,
  type Gauge,
  type GaugeDeclaration,
  type GaugeOptions,
  gauge,
  type Histogram,
  type HistogramDeclaration,
  type HistogramOptions,
  histogram,
  type LabelValues,
  type MetricDeclaration,
  type MetricDeclarations,
  type MetricOptions,
  type MetricsOf,
  type NoMetrics,
} from "./metrics.ts";
export { modelPath } from "./models.ts";
export type {
  AppMountOptions,
  FetchHandler,
  Mountable,
  MountOptions,
  ProgramMountOptions,
} from "./mounts.ts";
export type { EndpointKind, PlacementOptions, RunOptions } from "./options.ts";
export {
  type Answered,
  type ArgumentRecord,
  type Given,
  type Input,
  type InputSchema,
  type JsonSchemaSides,
  type Output,
  type OutputSchema,
  type Returnable,
  withJsonSchema,
} from "./schema.ts";
export {
  type Endpoints,
  type FunctionServiceOptions,
  type Service,
  type ServiceClass,
  type ServiceDecorator,
  type ServiceOptions,
  service,
} from "./service.ts";
export {
  type Socket,
  type SocketContext,
  type SocketDecorator,
  type SocketFunction,
  type SocketMessage,
  type SocketMethodOptions,
  type SocketMount,
  type SocketOptions,
  socket,
} from "./sockets.ts";
export { type StreamSchema, stream } from "./stream.ts";
