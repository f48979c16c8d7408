/**
 * Counts the calls of deployments: which endpoint was called, over which face,
 * how it went and how long it took. It looks on: a call waits for nothing
 * here, and gets the very answer that it would have got.
 *
 * The endpoint's name is the manifest's, and empty for a call that names none,
 * or one that there is not: nothing that callers write becomes a label.
 */
import type { Message } from "@bufbuild/protobuf";
import type {
  ContextValues,
  Interceptor,
  StreamRequest,
  StreamResponse,
} from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { Deployment } from "../../../deployments/deployment.ts";
import { type Problem, toProblem } from "../../../errors.ts";
import { arrivalOf } from "../engine/caller.ts";
import { scopeOf } from "../engine/innermost.ts";
import type { EndListener } from "../engine/scope.ts";
import { isLocated, locatedOf } from "../target.ts";

type Next = ReturnType<Interceptor>;

/** A call until it is counted. */
class CountedCall implements EndListener {
  readonly #deployment: Deployment;
  readonly #values: ContextValues;
  /** As the caller wrote it. */
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
    const endpoint = this.#deployment.find(this.endpoint)?.name ?? "";
    this.#deployment.metrics?.requestFinished(endpoint, { protocol, code, seconds });
  }
}

/** To stand behind what finds the deployment and lets the caller in. */
export function createCountInterceptor(): Interceptor {
  return (next) => (req) => {
    const deployment = runningDeployment(req.contextValues);
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
      tellOf(answer, listener);
    }
    return answer;
  };
}

function tellOf(answer: ReturnType<Next>, listener: EndListener): void {
  answer.then(
    () => listener.ended(undefined),
    (thrown: unknown) => listener.ended(toProblem(thrown)),
  );
}

/** Undefined where there is none, or none that runs here, which the method itself will say. */
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
    return { ...answer, message: countedToItsEnd(answer.message, call) };
  } catch (thrown) {
    call.count(codeOf(thrown));
    throw thrown;
  }
}

async function* countedToItsEnd(
  messages: AsyncIterable<Message>,
  call: CountedCall,
): AsyncGenerator<Message, void, undefined> {
  // Who leaves before its end has had what it wanted.
  let code = "ok";
  try {
    yield* messages;
  } catch (thrown) {
    code = codeOf(thrown);
    throw thrown;
  } finally {
    call.count(code);
  }
}

function namedEndpoint(message: Message): string {
  const { endpoint } = message as { readonly endpoint?: unknown };
  return typeof endpoint === "string" ? endpoint : "";
}

function codeOf(thrown: unknown): string {
  return codeToString(toProblem(thrown).code);
}
