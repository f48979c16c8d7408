/**
 * Metrics of calls: counts which endpoint of a deployment was called, over
 * which protocol, with which outcome and how long it took. It only observes: it
 * neither delays a call nor changes its answer.
 *
 * A call is the call of an endpoint, or a submit; the retry of one task submits a task, so it is
 * counted, too. Other requests about tasks or endpoints are not: otherwise an open page would
 * raise the number of calls that it shows, and a caller who waits for a task would raise the
 * duration of calls. Nor are requests to the platform after which it submits tasks itself: the
 * retry of many tasks, and the run of a schedule.
 *
 * The endpoint's label comes from the manifest, and is empty for a call that
 * names no endpoint or an unknown one: text from callers never becomes a label.
 */
import type { DescMethod, Message } from "@bufbuild/protobuf";
import {
  type ContextValues,
  createContextKey,
  type Interceptor,
  type StreamRequest,
  type StreamResponse,
} from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import { EndpointService } from "../../../../gen/tessera/v1/endpoint_pb.js";
import { TaskService } from "../../../../gen/tessera/v1/task_pb.js";
import type { Deployment } from "../../../deployments/deployment.ts";
import { type Problem, toProblem } from "../../../errors.ts";
import { raceAbort } from "../../../time/race.ts";
import { type EndListener, scopeOf } from "../engine/call-context.ts";
import { arrivalOf } from "../engine/caller.ts";
import { failureOf } from "../engine/deadline.ts";
import { isLocated, locatedOf } from "./access.ts";

type Next = ReturnType<Interceptor>;

/**
 * The methods that call an endpoint, or submit tasks. Requests to mounted servers are counted in
 * `server/mounts/mounted.ts`.
 */
const CALLS: ReadonlySet<DescMethod> = new Set([
  EndpointService.method.callEndpoint,
  EndpointService.method.streamEndpoint,
  TaskService.method.submitTask,
  TaskService.method.submitTasks,
  TaskService.method.retryTask,
]);

/** The endpoint of the task that a call retries, whose request need not name it. */
const calledEndpoint = createContextKey("", {
  description: "the endpoint of the task that the call retries",
});

/** The call retries a task of this endpoint. */
export function noteEndpoint({ values }: { readonly values: ContextValues }, name: string): void {
  values.set(calledEndpoint, name);
}

/** A call until it is counted. */
class CountedCall implements EndListener {
  readonly #deployment: Deployment;
  readonly #values: ContextValues;
  /** The endpoint as the caller wrote it. */
  endpoint: string;

  constructor(deployment: Deployment, values: ContextValues, endpoint: string) {
    this.#deployment = deployment;
    this.#values = values;
    this.endpoint = endpoint;
  }

  ended(found: Problem | undefined): void {
    this.count(found ? codeToString(found.code) : "ok");
  }

  count(code: string): void {
    const { protocol, atMs } = arrivalOf(this.#values);
    const seconds = (performance.now() - atMs) / 1_000;
    const named = this.endpoint || this.#values.get(calledEndpoint);
    const endpoint = this.#deployment.find(named)?.name ?? "";
    this.#deployment.metrics?.requestFinished(endpoint, { protocol, code, seconds });
  }
}

/** Creates the interceptor. It has to come after the one that finds the deployment and authorizes the caller. */
export function createCountInterceptor(): Interceptor {
  return (next) => (req) => {
    const deployment = CALLS.has(req.method) ? runningDeployment(req.contextValues) : undefined;
    if (deployment?.metrics === undefined) {
      return next(req);
    }
    const values = req.contextValues;
    if (req.stream) {
      return countStream(next, req, new CountedCall(deployment, values, ""));
    }
    const call = new CountedCall(deployment, values, namedEndpoint(req.message));
    const scope = scopeOf(req);
    if (scope) {
      scope.listener = call;
    }
    const listener = scope ?? call;
    let answer: ReturnType<Next>;
    try {
      answer = next(req);
    } catch (thrown) {
      listener.ended(toProblem(thrown));
      throw thrown;
    }
    // The answer of the implementation tells by itself: to wait for it too would cost every call.
    if (scope === undefined || answer !== scope.answer) {
      tellOf(answer, listener, req.signal);
    }
    return answer;
  };
}

/** Counts what the caller is told, when they are: at its end, or when the deadline has passed. */
function tellOf(answer: ReturnType<Next>, listener: EndListener, signal: AbortSignal): void {
  raceAbort(answer, signal).then(
    () => listener.ended(undefined),
    (thrown: unknown) => listener.ended(failureOf(thrown, signal)),
  );
}

/** The deployment of a call; undefined if it has none or that does not run here, which the method itself reports. */
function runningDeployment(values: ContextValues): Deployment | undefined {
  if (!isLocated(values)) {
    return undefined;
  }
  try {
    return locatedOf({ values }).deployment();
  } catch {
    return undefined;
  }
}

async function countStream(
  next: Next,
  req: StreamRequest,
  call: CountedCall,
): Promise<StreamResponse> {
  const message = (async function* () {
    for await (const each of req.message) {
      call.endpoint ||= namedEndpoint(each);
      yield each;
    }
  })();
  try {
    const answer = (await next({ ...req, message })) as StreamResponse;
    return { ...answer, message: countedToItsEnd(answer.message, call, req.signal) };
  } catch (thrown) {
    call.count(codeToString(failureOf(thrown, req.signal).code));
    throw thrown;
  }
}

async function* countedToItsEnd(
  messages: AsyncIterable<Message>,
  call: CountedCall,
  signal: AbortSignal,
): AsyncGenerator<Message, void, undefined> {
  // A caller that leaves before the end is no failure.
  let code = "ok";
  try {
    yield* messages;
  } catch (thrown) {
    const found = failureOf(thrown, signal);
    code = found.reason === "CALLER_GONE" ? code : codeToString(found.code);
    throw thrown;
  } finally {
    call.count(code);
  }
}

function namedEndpoint(message: Message): string {
  const { endpoint } = message as { readonly endpoint?: unknown };
  return typeof endpoint === "string" ? endpoint : "";
}
