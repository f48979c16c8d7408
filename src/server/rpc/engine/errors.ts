/** The interceptor that converts every error of an RPC to a `Problem`, over every protocol. */
import type { ContextValues, Interceptor, StreamResponse } from "@connectrpc/connect";
import { RequestInfoSchema } from "../../../../gen/google/rpc/error_details_pb.js";
import { type Problem, toProblem } from "../../../errors.ts";
import { requestInfo } from "../../http/problem.ts";
import { arrivalOf } from "./caller.ts";

/** Called with every error that leaves an RPC, for the log. */
export type ReportProblem = (
  found: Problem,
  rpc: { readonly url: string; readonly contextValues: ContextValues },
) => void;

/** The outermost interceptor of the library's handlers. */
export function createErrorsInterceptor(report?: ReportProblem): Interceptor {
  return (next) => async (req) => {
    const convert = (thrown: unknown): Problem => {
      const found = toProblem(thrown);
      report?.(found, req);
      const { requestId } = arrivalOf(req.contextValues);
      return requestId === "" ? found : told(found, requestId);
    };
    try {
      const res = await next(req);
      return res.stream ? { ...res, message: converted(res.message, convert) } : res;
    } catch (thrown) {
      throw convert(thrown);
    }
  };
}

/** Adds the id of the request to an error. */
export function told(found: Problem, requestId: string): Problem {
  const isInfo = (detail: Problem["details"][number]): boolean =>
    "desc" in detail && detail.desc === RequestInfoSchema;
  found.details = [...found.details.filter((each) => !isInfo(each)), requestInfo(requestId)];
  return found;
}

async function* converted(
  messages: StreamResponse["message"],
  convert: (thrown: unknown) => Problem,
): StreamResponse["message"] {
  try {
    yield* messages;
  } catch (thrown) {
    throw convert(thrown);
  }
}
