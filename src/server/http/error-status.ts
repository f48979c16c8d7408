/** The HTTP statuses of errors. */
import { Code } from "@connectrpc/connect";
import type { Problem, Reason } from "../../errors.ts";

/** The Connect protocol's table, https://connectrpc.com/docs/protocol#error-codes. */
const STATUS: { readonly [code in Code]: number } = {
  [Code.Canceled]: 499,
  [Code.Unknown]: 500,
  [Code.InvalidArgument]: 400,
  [Code.DeadlineExceeded]: 504,
  [Code.NotFound]: 404,
  [Code.AlreadyExists]: 409,
  [Code.PermissionDenied]: 403,
  [Code.ResourceExhausted]: 429,
  [Code.FailedPrecondition]: 400,
  [Code.Aborted]: 409,
  [Code.OutOfRange]: 400,
  [Code.Unimplemented]: 501,
  [Code.Internal]: 500,
  [Code.Unavailable]: 503,
  [Code.DataLoss]: 500,
  [Code.Unauthenticated]: 401,
};

/** Statuses where plain HTTP has a better one than the table. */
const HTTP_STATUS: { readonly [reason in Reason]?: number } = {
  BODY_TOO_LARGE: 413,
  CONTENT_TYPE_UNSUPPORTED: 415,
  METHOD_NOT_ALLOWED: 405,
};

/** The code that a status of HTTP stands for, in metrics; undefined for one that is no error. */
export function codeOfStatus(status: number): Code | undefined {
  if (status < 400) {
    return undefined;
  }
  const [code] = Object.entries(STATUS).find(([, each]) => each === status) ?? [];
  return code === undefined ? (status < 500 ? Code.InvalidArgument : Code.Internal) : Number(code);
}

/** HTTP status of an error in the Connect protocol. */
export function connectStatus(code: Code): number {
  return STATUS[code];
}

/** HTTP status of an error on REST paths and on the data plane. */
export function httpStatus(found: Problem): number {
  return found.status ?? HTTP_STATUS[found.reason] ?? STATUS[found.code];
}
