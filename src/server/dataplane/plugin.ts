/**
 * The data plane: the paths that callers of a deployment use, one set per
 * endpoint (`/{endpoint}`, `/{endpoint}/submit` and so on).
 *
 * Each route writes one request message, calls the same RPC as gRPC callers,
 * and writes the answer in the words that existing HTTP clients know. The RPC
 * makes all checks and decisions; this plugin only translates.
 */
import { create, type JsonObject } from "@bufbuild/protobuf";
import type { ContextValues } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import {
  CallEndpointRequestSchema,
  EndpointService,
  StreamEndpointRequestSchema,
} from "../../../gen/tessera/v1/endpoint_pb.js";
import {
  CancelTaskRequestSchema,
  CreateTaskAccessRequestSchema,
  GetTaskArgumentFileRequestSchema,
  GetTaskArgumentsRequestSchema,
  GetTaskRequestSchema,
  type GetTaskResultRequest,
  ResultFormat,
  RetryTaskRequestSchema,
  StreamTaskRequestSchema,
  type SubmitTaskRequest,
  type SubmitTaskResponse,
  type Task,
  type TaskAccess,
  type TaskArgumentFile,
  type TaskArguments,
  type TaskResult,
  TaskService,
  WatchTaskRequestSchema,
} from "../../../gen/tessera/v1/task_pb.js";
import { type Problem, problem, toProblem } from "../../errors.ts";
import { cut } from "../http/body.ts";
import { disconnectSignal } from "../http/disconnect.ts";
import type { CallOrigin, Invoke, UnaryAnswer } from "../http/invoke.ts";
import { mountAliases, named, placeOf } from "../http/paths.ts";
import { requestLog } from "../http/request-log.ts";
import type { StreamedBodies } from "../http/streamed-bodies.ts";
import {
  passCallHeaders,
  sendAccess,
  sendArgumentFile,
  sendArguments,
  sendCancelled,
  sendResult,
  sendStatus,
  sendSubmitted,
  wordsFor,
} from "./answer.ts";
import { lastEventId, lastPieceId } from "./event-id.ts";
import { sendEvents } from "./events.ts";
import { sendProblemOrPage } from "./refusal-page.ts";
import {
  ACCESS_PARAMETER,
  type BodyLimits,
  bodiesOf,
  checkAccess,
  controlRequest,
  type GivenParameters,
  hasAccess,
  idempotencyKey,
  keepToCaller,
  parametersOf,
  preferredWait,
  queryFile,
  queryTaskId,
  queryWait,
  readFile,
  readInput,
  readReplay,
  readSchedule,
  refuseMisspelt,
  withoutSharing,
} from "./request.ts";
import { chooseForm, type StreamedOutput, sendPieces, sendWhole, WHOLE } from "./stream.ts";
import { chooseTaskForm, sendTaskPieces } from "./task-stream.ts";

/** What the routes of endpoints need. */
interface RouteOptions {
  readonly invoke: Invoke;
  /** What an endpoint streams; undefined if it does not, or does not exist. */
  readonly streamedBy: (endpoint: string, values: ContextValues) => StreamedOutput | undefined;
  /** How much of a body of a call of this endpoint is read; `values` are those of `contextValues`. */
  readonly bodyLimits: (endpoint: string, req: FastifyRequest, values: ContextValues) => BodyLimits;
  /** Results say of which task they are: they may look like an answer about it. Default: false. */
  readonly tellsTask?: boolean;
}

/** What the routes of tasks of mounted servers need. */
interface QueueRouteOptions extends RouteOptions {
  /** How much is read of the body of a request that is to be a task. */
  readonly requestLimits: BodyLimits;
}

/** A request to a mounted server that is to be a task. */
export interface QueuedRequest {
  /** The path of the mount, which is the name of its endpoint. */
  readonly endpoint: string;
  /** The arguments of the task, without the body. Undefined where the body has all of them. */
  readonly fields: JsonObject | undefined;
  /** The argument that is the body; undefined without one. */
  readonly body: string | undefined;
  /** The parameters of the submit. */
  readonly given: GivenParameters;
  /** The path that the task has its own ones below. */
  readonly path: string;
}

/** What a request to a mounted server means: a task, or by the verb of a route a question about one. */
export type QueuedPlace =
  | { readonly submit: QueuedRequest }
  | { readonly endpoint: string; readonly verb: string };

/** The names that a submit and the paths of a task have. */
export interface QueueWords {
  /** The parameters of a submit. */
  readonly parameters: readonly string[];
  /** The last segments of the paths that ask of a task. */
  readonly verbs: readonly string[];
}

interface DataPlaneOptions extends RouteOptions {
  /** Refuses a request before its body is read, or returns its context for the interceptors. */
  readonly contextValues: (req: FastifyRequest) => ContextValues | Promise<ContextValues>;
  /** The endpoint at a path, such as `/v1/predict`; undefined for others, and where nothing runs. */
  readonly endpointAt: (path: string, values: ContextValues) => string | undefined;
  /** Answers by the mounted server at the path of a request; undefined without one. */
  readonly toServer: (
    req: FastifyRequest,
    reply: FastifyReply,
    values: ContextValues,
  ) => Promise<void> | undefined;
  /** Throws for an endpoint whose service gave it another path than `/{endpoint}`. */
  readonly refuseMoved: (endpoint: string, values: ContextValues) => void;
}

/** The origin of a request whose sender is known. */
type Origin = CallOrigin & { readonly contextValues: ContextValues };

interface Route {
  readonly path: string;
  readonly methods: readonly string[];
  /** The query parameters that it takes. */
  readonly query: readonly string[];
  /** True for calls of the function, whose query is its own. */
  readonly isCall?: boolean;
  /** True for those that read a task, which its access opens. */
  readonly reads?: boolean;
  /** Sends the answer itself and resolves once that has begun. */
  readonly handle: (req: FastifyRequest, reply: FastifyReply, origin: Origin) => Promise<void>;
}

/** The query parameters that say when a task runs, how long it is kept, and what it is found by. */
const SCHEDULE = [
  "priority",
  "run_at",
  "delay",
  "start_by",
  "start_within",
  "retention",
  "webhook",
  "key",
  "tags",
];

/** The parameters of a submit. */
const SUBMITTING = [...SCHEDULE, "replay"];

/**
 * The query parameters that a caller of a function may have meant for the node. Many functions have
 * a `key` of their own.
 */
const CALL_WORDS = [...SUBMITTING.filter((name) => name !== "key"), "wait"];

/** The Fastify plugin, for a server that leaves bodies to handlers. */
export async function dataPlanePlugin(
  app: FastifyInstance,
  options: DataPlaneOptions,
): Promise<void> {
  const all = routes(options);
  const answer = createAnswer(all, options);
  const { contextValues, endpointAt, toServer } = options;
  const failed = (req: FastifyRequest, reply: FastifyReply, thrown: unknown) =>
    sendOrCut(req, reply, toProblem(thrown));
  const answerAlias = mountAliases(app, all, {
    ...{ contextValues, endpointAt, answer, toServer, failed },
  });
  for (const route of all) {
    const answerNamed = (req: FastifyRequest, reply: FastifyReply, values: ContextValues) => {
      const place = placeOf(req, all, (path) => endpointAt(path, values));
      if (place) {
        return answer(place.route, named(req, place.endpoint), reply, values);
      }
      const passed = toServer(req, reply, values);
      if (passed !== undefined) {
        return passed;
      }
      // What names a task finds it by the name of its endpoint too, which is all that is known
      // where nothing runs.
      if (route.isCall) {
        options.refuseMoved(endpointOf(req), values);
      }
      return answer(route, req, reply, values);
    };
    // Returns nothing: a reply is a promise itself, and Fastify would wait twice for a promise of one.
    const handler = (req: FastifyRequest, reply: FastifyReply): void => {
      // No endpoint has such a name: a service chose the path, it is an RPC that is not served, or the root.
      const name = endpointOf(req);
      if (hasAccess(req)) {
        keepToCaller(reply);
      }
      if (name === "" || (req.method === "POST" && name.includes("."))) {
        answerAlias(req, reply);
        return;
      }
      try {
        const values = contextValues(req);
        const answered =
          values instanceof Promise
            ? values.then((known) => answerNamed(req, reply, known))
            : answerNamed(req, reply, values);
        answered.catch((thrown) => failed(req, reply, thrown));
      } catch (thrown) {
        failed(req, reply, thrown);
      }
    };
    const { path: url } = route;
    app.route({ url, method: app.supportedMethods, exposeHeadRoute: false, handler });
  }
}

/** Creates the function that answers by a route, once the endpoint and the context are known. */
function createAnswer(all: readonly Route[], { bodyLimits }: RouteOptions) {
  const words = [...new Set(all.flatMap(({ query }) => query))];
  return (route: Route, req: FastifyRequest, reply: FastifyReply, values: ContextValues) => {
    const { methods, query, isCall, reads = false } = route;
    if (!methods.includes(req.method)) {
      // Throws for an unknown endpoint, which is 404 rather than 405.
      bodyLimits(endpointOf(req), req, values);
      reply.header("allow", methods.join(", "));
      const message = `${req.url.split("?", 1)[0]} takes ${methods.join(" or ")}, not ${req.method}`;
      throw problem("METHOD_NOT_ALLOWED", message);
    }
    refuseMisspelt(req, query, isCall ? CALL_WORDS : words);
    checkAccess(req, values, { reads });
    return route.handle(req, reply, origin(req, reply, values));
  };
}

/**
 * Creates the function that answers what requests to mounted servers with a queue mean besides
 * themselves: submits, and questions about tasks. It returns undefined for all others.
 */
export function createQueueOfMounts(
  options: QueueRouteOptions & {
    readonly placeOf: (
      req: FastifyRequest,
      values: ContextValues,
      words: QueueWords,
    ) => QueuedPlace | undefined;
  },
): DataPlaneOptions["toServer"] {
  const all = routes({ ...options, tellsTask: true });
  const answer = createAnswer(all, options);
  const verbs = new Map(all.filter(({ isCall }) => !isCall).map((each) => [verbOf(each), each]));
  const words = { parameters: SUBMITTING, verbs: [...verbs.keys()] };
  return (req, reply, values) => {
    const place = options.placeOf(req, values, words);
    if (place === undefined) {
      return undefined;
    }
    if ("submit" in place) {
      checkAccess(req, values, { reads: false });
      return submitRequest(req, reply, origin(req, reply, values), { ...options, ...place });
    }
    if (hasAccess(req)) {
      keepToCaller(reply);
    }
    const route = verbs.get(place.verb);
    return route && answer(route, named(req, place.endpoint), reply, values);
  };
}

/** Sends an error, or else cuts the request: nobody catches what such a handler throws, which would end the process. */
function sendOrCut(req: FastifyRequest, reply: FastifyReply, found: Problem): void {
  try {
    sendProblemOrPage(req, reply, found);
  } catch (err) {
    requestLog(req).error(
      { err, cause: found },
      "an answer was cut off, because its error could not be sent",
    );
    cut(req.raw);
  }
}

function origin(req: FastifyRequest, reply: FastifyReply, contextValues: ContextValues): Origin {
  return {
    header: req.headers,
    signal: disconnectSignal(reply),
    requestMethod: req.method,
    url: req.url,
    contextValues,
  };
}

function routes({ invoke, streamedBy, bodyLimits, tellsTask }: RouteOptions): Route[] {
  const { getTask, getTaskResult, cancelTask, retryTask, watchTask, streamTask } =
    TaskService.method;
  const { getTaskArguments, getTaskArgumentFile, createTaskAccess } = TaskService.method;

  const inputOf = (req: FastifyRequest, values: ContextValues, bodies: StreamedBodies) =>
    readInput(req, bodies, bodyLimits(endpointOf(req), req, values));

  return [
    {
      path: "/:endpoint",
      methods: ["POST"],
      query: [],
      isCall: true,
      async handle(req, reply, from) {
        const { contextValues } = from;
        const output = streamedBy(endpointOf(req), contextValues);
        const streamed = output?.kind === "api" ? output : undefined;
        const form = streamed && chooseForm(req.headers.accept, streamed);
        const bodies = bodiesOf(contextValues);
        if (streamed && form && form !== WHOLE) {
          const message = create(StreamEndpointRequestSchema);
          message.endpoint = streamed.endpoint;
          message.input = await inputOf(req, contextValues, bodies);
          message.resultFormat = ResultFormat.BODY;
          const pieces = invoke.stream(EndpointService.method.streamEndpoint, message, from);
          return sendPieces(reply, pieces, { form, pieces: streamed.pieces, bodies });
        }
        const message = create(CallEndpointRequestSchema);
        message.endpoint = endpointOf(req);
        message.input = await inputOf(req, contextValues, bodies);
        message.resultFormat = ResultFormat.BODY;
        message.idempotencyKey = idempotencyKey(req);
        const answer = await invoke.unary(EndpointService.method.callEndpoint, message, from);
        passReplay(reply, answer);
        passCallHeaders(reply, answer);
        const result = answer.message as TaskResult;
        return streamed
          ? sendWhole(reply, bodies, streamed)
          : sendResult(reply, result, { bodies });
      },
    },
    {
      path: "/:endpoint/submit",
      methods: ["POST"],
      query: SUBMITTING,
      isCall: true,
      async handle(req, reply, from) {
        const bodies = bodiesOf(from.contextValues);
        return submit(req, reply, from, {
          ...{ invoke, bodies },
          endpoint: endpointOf(req),
          input: await inputOf(req, from.contextValues, bodies),
          given: parametersOf(req),
          path: above(req.url),
        });
      },
    },
    {
      path: "/:endpoint/status",
      methods: ["GET", "HEAD"],
      query: ["task_id", "wait", ACCESS_PARAMETER],
      reads: true,
      async handle(req, reply, from) {
        const message = create(GetTaskRequestSchema, asked(req));
        const answer = await invoke.unary(getTask, message, from);
        return sendStatus(reply, answer.message as Task, wordsOf(req));
      },
    },
    {
      path: "/:endpoint/get",
      methods: ["GET", "HEAD"],
      query: ["task_id", "wait", ACCESS_PARAMETER],
      reads: true,
      handle(req, reply, from) {
        const message: GetTaskResultRequest = {
          ...asked(req),
          $typeName: "tessera.v1.GetTaskResultRequest",
          deployment: "",
          resultFormat: ResultFormat.BODY,
        };
        const bodies = bodiesOf(from.contextValues);
        return invoke.unary(getTaskResult, message, from).then((answer) => {
          const { taskId } = message;
          const result = answer.message as TaskResult;
          withoutSharing(from.contextValues, bodies);
          if (tellsTask) {
            reply.header("tessera-task-id", taskId);
          }
          return sendResult(reply, result, { bodies, asked: { req, taskId } });
        });
      },
    },
    {
      path: "/:endpoint/arguments",
      methods: ["GET", "HEAD"],
      query: ["task_id", "file"],
      async handle(req, reply, from) {
        const task = { endpoint: endpointOf(req), taskId: queryTaskId(req) };
        const file = queryFile(req);
        const bodies = bodiesOf(from.contextValues);
        const sending = { bodies, asked: { req, taskId: task.taskId } };
        if (file === undefined) {
          const message = create(GetTaskArgumentsRequestSchema, task);
          const answer = await invoke.unary(getTaskArguments, message, from);
          return sendArguments(reply, answer.message as TaskArguments, sending);
        }
        const message = create(GetTaskArgumentFileRequestSchema, { ...task, file });
        const answer = await invoke.unary(getTaskArgumentFile, message, from);
        return sendArgumentFile(reply, answer.message as TaskArgumentFile, sending);
      },
    },
    {
      path: "/:endpoint/cancel",
      methods: ["POST", "PUT"],
      query: ["task_id", "abort"],
      async handle(req, reply, from) {
        const init = { endpoint: endpointOf(req), ...(await controlRequest(req, this.query)) };
        const answer = await invoke.unary(cancelTask, create(CancelTaskRequestSchema, init), from);
        sendCancelled(reply, answer.message as Task, wordsOf(req));
      },
    },
    {
      path: "/:endpoint/retry",
      methods: ["PUT", "POST"],
      query: ["task_id", "replay"],
      async handle(req, reply, from) {
        const { taskId } = await controlRequest(req, ["task_id"]);
        const init = {
          endpoint: endpointOf(req),
          taskId,
          idempotencyKey: idempotencyKey(req),
          replay: readReplay(parametersOf(req)),
        };
        const answer = await invoke.unary(retryTask, create(RetryTaskRequestSchema, init), from);
        const replayed = passReplay(reply, answer);
        const path = above(req.url);
        sendSubmitted(reply, answer.message as Task, { words: wordsOf(req), replayed, path });
      },
    },
    {
      path: "/:endpoint/access",
      methods: ["POST"],
      query: ["task_id"],
      async handle(req, reply, from) {
        const { taskId } = await controlRequest(req, this.query);
        const message = create(CreateTaskAccessRequestSchema, {
          endpoint: endpointOf(req),
          taskId,
        });
        const answer = await invoke.unary(createTaskAccess, message, from);
        sendAccess(reply, answer.message as TaskAccess);
      },
    },
    {
      path: "/:endpoint/events",
      methods: ["GET"],
      query: ["task_id", "last_event_id", ACCESS_PARAMETER],
      reads: true,
      async handle(req, reply, from) {
        const after = lastEventId(req);
        const asked = { endpoint: endpointOf(req), taskId: queryTaskId(req), ...after };
        const message = create(WatchTaskRequestSchema, asked);
        const events = invoke.stream(watchTask, message, from);
        return sendEvents(reply, events, { words: wordsOf(req), after });
      },
    },
    {
      path: "/:endpoint/stream",
      methods: ["GET"],
      query: ["task_id", "last_event_id", ACCESS_PARAMETER],
      reads: true,
      async handle(req, reply, from) {
        const endpoint = endpointOf(req);
        const form = chooseTaskForm(req.headers.accept, streamedBy(endpoint, from.contextValues));
        const message = create(StreamTaskRequestSchema, {
          endpoint,
          taskId: queryTaskId(req),
          resultFormat: ResultFormat.BODY,
          ...lastPieceId(req),
        });
        return sendTaskPieces(reply, invoke.stream(streamTask, message, from), form);
      },
    },
  ];
}

/** What is submitted, and how. */
interface Submitting {
  readonly invoke: Invoke;
  readonly bodies: StreamedBodies;
  readonly endpoint: string;
  readonly input: SubmitTaskRequest["input"];
  readonly given: GivenParameters;
  /** The path that the task has its own ones below. */
  readonly path: string;
}

async function submit(
  req: FastifyRequest,
  reply: FastifyReply,
  from: Origin,
  { invoke, bodies, endpoint, input, given, path }: Submitting,
): Promise<void> {
  const wait = preferredWait(req);
  const message: SubmitTaskRequest = {
    $typeName: "tessera.v1.SubmitTaskRequest",
    deployment: "",
    ...{ endpoint, input, wait },
    idempotencyKey: idempotencyKey(req),
    replay: readReplay(given),
    resultFormat: ResultFormat.BODY,
    webhook: "",
    key: "",
    tags: [],
  };
  readSchedule(given, message);
  if (wait) {
    reply.header("preference-applied", `wait=${wait.seconds}`);
  }
  const answer = await invoke.unary(TaskService.method.submitTask, message, from);
  passReplay(reply, answer);
  const { task, replayed, result } = answer.message as SubmitTaskResponse;
  if (task === undefined) {
    throw new Error("SubmitTask answered no task");
  }
  return result
    ? sendResult(reply.header("tessera-task-id", task.taskId), result, { bodies })
    : sendSubmitted(reply, task, { words: wordsOf(req), replayed, path });
}

/** Stores a request to a mounted server as a task. */
async function submitRequest(
  req: FastifyRequest,
  reply: FastifyReply,
  from: Origin,
  {
    invoke,
    bodyLimits,
    requestLimits,
    submit: { endpoint, fields, body, given, path },
  }: QueueRouteOptions & { readonly submit: QueuedRequest },
): Promise<void> {
  const bodies = bodiesOf(from.contextValues);
  let input: SubmitTaskRequest["input"];
  if (fields === undefined) {
    input = await readInput(req, bodies, bodyLimits(endpoint, req, from.contextValues));
  } else if (body === undefined) {
    input = { case: "arguments", value: fields };
  } else {
    input = readFile(req, bodies, { limits: requestLimits, beside: { argument: body, fields } });
  }
  return submit(req, reply, from, { invoke, bodies, endpoint, input, given, path });
}

/** `status` of `/:endpoint/status`. */
function verbOf({ path }: Route): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** The path of an endpoint, in that of one of its verbs. */
function above(url: string): string {
  const path = url.split("?", 1)[0] ?? "";
  return path.slice(0, path.lastIndexOf("/", path.length - 2));
}

/** Returns whether the answer repeats an earlier task, and sets its header if so. */
function passReplay(reply: FastifyReply, { header }: UnaryAnswer): boolean {
  const replayed = header.has("idempotent-replayed");
  if (replayed) {
    reply.header("idempotent-replayed", "true");
  }
  return replayed;
}

function endpointOf(req: FastifyRequest): string {
  return (req.params as { readonly endpoint: string }).endpoint.slice(0, 64);
}

/** The requested task, and how long to wait for it. */
function asked(req: FastifyRequest) {
  return { endpoint: endpointOf(req), taskId: queryTaskId(req), wait: queryWait(req) };
}

function wordsOf(req: FastifyRequest): ReturnType<typeof wordsFor> {
  return wordsFor(req.headers["user-agent"]);
}
