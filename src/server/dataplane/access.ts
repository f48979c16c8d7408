/**
 * Accesses of tasks in requests of the data plane: `GET /{endpoint}/events?task_id=…&access=…`.
 *
 * An access opens the paths that read one task, and no other. It is read only where such a path is
 * asked for; elsewhere `access` is a name like any other, which a function may use itself.
 *
 * A stream that it opened lasts as long as its maker may read the task (see
 * `rpc/engine/standing.ts`).
 */
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { problem } from "../../errors.ts";
import type { StreamedBodies } from "../http/streamed-bodies.ts";
import { queryParameter, queryTaskId } from "./request.ts";

/** The query parameter that holds an access. */
export const ACCESS_PARAMETER = "access";

/** Ends of the paths that read a task. */
const READING = /\/(?:events|stream|status|get)\/?$/;

/** What holds for the caller of an access. */
interface HeldAccess {
  readonly taskId: string;
}

const heldKey = createContextKey<HeldAccess | undefined>(undefined, {
  description: "the access of a task that the call came with",
});

/** Binds a call to the access that it came with. */
export function holdTo(values: ContextValues, held: HeldAccess): ContextValues {
  return values.set(heldKey, held);
}

/** Whether a request reads a task by its access, so that nobody may keep its answer or learn its URL. */
export function hasAccess(req: FastifyRequest): boolean {
  // First, because hardly any request has one.
  if (givenAccess(req) === undefined) {
    return false;
  }
  const { method, url } = req;
  return (method === "GET" || method === "HEAD") && READING.test(url.split("?", 1)[0] ?? "");
}

/** What stands in the place of an access, wherever it is. */
export function givenAccess({ url, query }: FastifyRequest): unknown {
  return url.includes("?")
    ? (query as Readonly<Record<string, unknown>>)[ACCESS_PARAMETER]
    : undefined;
}

/** The access of a request that has one. Errors: REQUEST_INVALID. */
export function accessOf(req: FastifyRequest): string {
  return queryParameter(req, ACCESS_PARAMETER) ?? "";
}

/** The problem of a request that an access does not open. */
export function accessDoesNotOpen({ url, method }: FastifyRequest): Error {
  return problem(
    "ACCESS_DENIED",
    `the access of a task does not open ${method} ${url.split("?", 1)[0]}: it opens GET of /events, /stream, /status and /get of its task; send a token in the header Authorization`,
  );
}

/** Refuses what the access of a call does not open. `reads`: the route reads a task. */
export function checkAccess(
  req: FastifyRequest,
  values: ContextValues,
  { reads }: { readonly reads: boolean },
): void {
  const held = values.get(heldKey);
  if (held === undefined) {
    return;
  }
  if (!reads) {
    throw accessDoesNotOpen(req);
  }
  if (queryTaskId(req) !== held.taskId) {
    throw problem(
      "ACCESS_DENIED",
      "the access is for another task: the task_id of the query has to be that of its own",
    );
  }
}

/** Neither is an answer kept, nor is its URL told to what it links to. */
export function keepToCaller(reply: FastifyReply): void {
  reply.header("cache-control", "no-store").header("referrer-policy", "no-referrer");
}

/** Takes from what a function said of its result what would have others keep or learn it. */
export function withoutSharing(values: ContextValues, bodies: StreamedBodies): void {
  const { head } = bodies;
  if (head && values.get(heldKey) !== undefined) {
    const headers = head.headers.filter(([name]) => !SHARING.has(name));
    bodies.head = { ...head, headers };
  }
}

const SHARING: ReadonlySet<string> = new Set(["cache-control", "referrer-policy"]);
