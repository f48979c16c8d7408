/** Who calls a deployment's own paths: the caller in the headers, or the maker of a task's access. */
import { Code, type ContextValues } from "@connectrpc/connect";
import type { FastifyRequest } from "fastify";
import { addressOf, type Principal, setPrincipal } from "../auth/principal.ts";
import { accessEnded, TASK_ACCESS_PREFIX, type TaskAccess } from "../auth/task-access.ts";
import { problem, toProblem } from "../errors.ts";
import { accessDoesNotOpen, accessOf, givenAccess, hasAccess, holdTo } from "./dataplane/access.ts";
import { setStanding } from "./rpc/engine/standing.ts";

type Values = ContextValues | Promise<ContextValues>;

interface AccessReading {
  readonly taskAccess: TaskAccess;
  /** The context of a request whose caller is who its headers say. */
  readonly byHeaders: (req: FastifyRequest) => Values;
  /** The context of one whose caller is found otherwise, by where it comes from. */
  readonly byAddress: (
    req: FastifyRequest,
    find: (address: string) => Principal | Promise<Principal>,
  ) => Values;
  /** The id of the deployment that a context is for. */
  readonly deploymentIdOf: (values: ContextValues) => string;
}

/**
 * Creates the function that finds the caller. It refuses an access that is not valid with
 * TOKEN_INVALID, and with ACCESS_DENIED who sends nothing but an access to what that does not open.
 */
export function createContextOf(reading: AccessReading): (req: FastifyRequest) => Values {
  return (req) => {
    const given = givenAccess(req);
    if (given === undefined) {
      return reading.byHeaders(req);
    }
    if (hasAccess(req)) {
      return enter(req, reading);
    }
    if (req.headers.authorization === undefined && isAccess(given)) {
      throw accessDoesNotOpen(req);
    }
    return reading.byHeaders(req);
  };
}

function isAccess(given: unknown): boolean {
  return [given].flat().some((each) => String(each).startsWith(TASK_ACCESS_PREFIX));
}

async function enter(
  req: FastifyRequest,
  { taskAccess, byHeaders, byAddress, deploymentIdOf }: AccessReading,
): Promise<ContextValues> {
  const text = accessOf(req);
  if (req.headers.authorization !== undefined) {
    // A bad credential is refused whatever else there is.
    await byHeaders(req);
  }
  const opened = taskAccess.open(text);
  const find = async (): Promise<ContextValues> => {
    try {
      return await byAddress(req, (address) => taskAccess.holder(opened, address));
    } catch (thrown) {
      throw toProblem(thrown).code === Code.Unauthenticated ? accessEnded(thrown) : thrown;
    }
  };
  const values = await find();
  if (deploymentIdOf(values) !== opened.deploymentId) {
    throw problem("ACCESS_DENIED", "the access is for a task of another deployment");
  }
  setStanding(values, {
    identify: async () => {
      setPrincipal(values, await taskAccess.holder(opened, addressOf(values)));
    },
    ended: accessEnded,
  });
  return holdTo(values, { taskId: opened.taskId });
}
