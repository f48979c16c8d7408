/**
 * The attributes of spans: OpenTelemetry's semantic conventions where one
 * exists, otherwise names below `tessera.`. docs/tracing.md lists them all; a
 * test compares the two.
 */
export const ATTRIBUTES = {
  deployment: "tessera.deployment",
  endpoint: "tessera.endpoint",
  taskId: "tessera.task.id",
  attempt: "tessera.task.attempt",
  retryOf: "tessera.task.retry_of",
  outcome: "tessera.outcome",
  requestId: "tessera.request.id",
  errorType: "error.type",
  messagingSystem: "messaging.system",
  messagingDestination: "messaging.destination.name",
  messagingOperation: "messaging.operation.name",
  messagingOperationType: "messaging.operation.type",
  messagingMessageId: "messaging.message.id",
  rpcSystem: "rpc.system.name",
  rpcMethod: "rpc.method",
  rpcStatus: "rpc.response.status_code",
  httpMethod: "http.request.method",
  httpRoute: "http.route",
  serviceName: "service.name",
  serviceVersion: "service.version",
  serviceInstance: "service.instance.id",
} as const;
