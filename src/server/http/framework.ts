/** Conversion of errors that Fastify raises before a handler runs. */
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { type Problem, problem, type Reason, toProblem } from "../../errors.ts";
import { sendProblem } from "./problem.ts";

const REASON_BY_CODE: { readonly [code: string]: Reason } = {
  FST_ERR_BAD_URL: "REQUEST_INVALID",
  FST_ERR_MAX_PARAM_LENGTH: "ROUTE_NOT_FOUND",
};

/** The query of a URL that a message quotes: it may hold a secret. */
const QUERY = /\?.*'/s;

/** Converts any error to a problem, Fastify's errors by their codes. */
function fromFastify(thrown: unknown): Problem {
  const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "";
  const reason = REASON_BY_CODE[code];
  return reason === undefined
    ? toProblem(thrown)
    : problem(reason, (thrown as Error).message.replace(QUERY, "'"), { cause: thrown });
}

/** The handler for Fastify's `setErrorHandler` and its option `frameworkErrors`. */
export function sendFrameworkError(
  err: FastifyError,
  _req: FastifyRequest,
  reply: FastifyReply,
): void {
  sendProblem(reply, fromFastify(err));
}
