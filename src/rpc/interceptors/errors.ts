/** Makes every error that leaves an RPC a `Problem`, whichever face it leaves by. */
import type { Interceptor, StreamResponse } from "@connectrpc/connect";
import { type Problem, toProblem } from "../../errors.ts";

/** Told of every error on its way out, for the log. */
export type ReportProblem = (found: Problem, rpc: { readonly url: string }) => void;

/** The outermost interceptor of the library's handlers. */
export function createErrorsInterceptor(report?: ReportProblem): Interceptor {
  return (next) => async (req) => {
    const convert = (thrown: unknown): Problem => {
      const found = toProblem(thrown);
      report?.(found, req);
      return found;
    };
    try {
      const res = await next(req);
      return res.stream ? { ...res, message: converted(res.message, convert) } : res;
    } catch (thrown) {
      throw convert(thrown);
    }
  };
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
