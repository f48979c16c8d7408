/**
 * Ends every stream with its credential and with the server, whatever its method does (see
 * `engine/standing.ts`): the method's signal aborts, and the caller gets the error. Calls without a
 * stream pass as they are.
 */
import type { DescMethod } from "@bufbuild/protobuf";
import type {
  ContextValues,
  Interceptor,
  StreamRequest,
  StreamResponse,
} from "@connectrpc/connect";
import { Access } from "../../../../gen/tessera/v1/access_pb.js";
import { authorize, keepsRights } from "../../../auth/permissions.ts";
import { type Principal, principalOf } from "../../../auth/principal.ts";
import type { Directory, Located } from "../../../deployments/directory.ts";
import { problem } from "../../../errors.ts";
import { raceAbort } from "../../../time/race.ts";
import { hostOf, organizationIdOf } from "../engine/caller.ts";
import { failureOf, untilAborted } from "../engine/deadline.ts";
import { type LastingStream, type Standings, standingOf } from "../engine/standing.ts";
import { isLocated, locatedOf } from "../target.ts";
import { type AccessOf, credentialsIn, type Identify } from "./access.ts";

interface StandingOptions {
  readonly standings: Standings;
  readonly identify: Identify;
  readonly accessOf: AccessOf;
  /** See `Situation`. There nobody's rights change while the server runs. */
  readonly standalone: boolean;
  readonly directory: Directory | undefined;
}

type Next = ReturnType<Interceptor>;

/** Creates the interceptor. It comes after those that find the caller and the deployment. */
export function createStandingInterceptor(options: StandingOptions): Interceptor {
  return (next) => (req) => (req.stream ? keep(next, req, options) : next(req));
}

async function keep(
  next: Next,
  req: StreamRequest,
  options: StandingOptions,
): Promise<StreamResponse> {
  const { contextValues: values } = req;
  const controller = new AbortController();
  const { signal } = controller;
  let stop = (): void => {};
  // Not `AbortSignal.any`: with a listener it would live as long as the caller's connection.
  const follow = (): void => {
    release();
    controller.abort(req.signal.reason);
  };
  const release = (): void => {
    stop();
    req.signal.removeEventListener("abort", follow);
  };
  req.signal.addEventListener("abort", follow);
  if (req.signal.aborted) {
    follow();
  } else {
    stop = options.standings.add({
      values,
      ask: questionOf(req, options),
      end(found) {
        release();
        controller.abort(found);
      },
    });
  }
  try {
    const res = (await raceAbort(next({ ...req, signal }), signal)) as StreamResponse;
    return { ...res, message: released(untilAborted(res.message, signal), release) };
  } catch (thrown) {
    release();
    throw failureOf(thrown, signal);
  }
}

async function* released(
  messages: StreamResponse["message"],
  release: () => void,
): StreamResponse["message"] {
  try {
    yield* messages;
  } finally {
    release();
  }
}

/** What is asked again and again: who is calling, and whether they may do what they do. */
export function questionOf(
  req: Pick<StreamRequest, "contextValues" | "header"> & { readonly method: DescMethod },
  options: StandingOptions,
): LastingStream["ask"] {
  const { contextValues: values, method } = req;
  if (options.standalone || options.accessOf(method) === Access.PUBLIC) {
    return undefined;
  }
  const before = principalOf(values);
  const given = { ...credentialsIn(req.header), again: true };
  const access = options.accessOf(method);
  const identify = standingOf(values)?.identify ?? (() => options.identify(method, given, values));
  return async () => {
    await identify();
    const now = principalOf(values);
    if (before === undefined || now === undefined) {
      return;
    }
    if (access === Access.ENDPOINT && isLocated(values)) {
      authorize(now, access, { deployment: await factsNow(values, now, options.directory) });
    } else if (now !== before) {
      const organizationId = organizationIdOf(values);
      authorize(now, access, organizationId === undefined ? {} : { organizationId });
      if (!keepsRights(before, now, organizationId)) {
        throw problem(
          "ACCESS_DENIED",
          `the ${now.kind} of this stream may do less than when it began: open it again`,
        );
      }
    }
  };
}

/** The facts of the deployment as they are now; as they were where it is gone, or cannot be asked for. */
async function factsNow(
  values: ContextValues,
  principal: Principal,
  directory: Directory | undefined,
): Promise<Located["facts"]> {
  const { facts } = locatedOf({ values });
  const named = `${facts.organization}/${facts.name}`;
  try {
    const found = await directory?.find({ named, header: "", host: hostOf(values) }, principal);
    return found?.facts.deploymentId === facts.deploymentId ? found.facts : facts;
  } catch {
    // That a deployment ends is no end of the credential: its calls are ended with it.
    return facts;
  }
}
