// @ts-check
/** A client of the deployment's API with the token of this session. */
import { deployment, targetHeaders } from "./target.js";
import { askForToken, currentToken } from "./token.js";

/** @typedef {{field: string, description: string}} Violation */

/** An error response of the server. */
export class CallError extends Error {
  /**
   * @param {string} message
   * @param {{status?: number, code?: string, reason?: string, retryAfter?: string | null, violations?: Violation[]}} facts
   */
  constructor(message, { status = 0, code = "", reason = "", retryAfter = null, violations = [] }) {
    super(message);
    this.status = status;
    this.code = code;
    this.reason = reason;
    this.retryAfter = retryAfter;
    this.violations = violations;
  }
}

/**
 * Sends a request with the token of this session. When the server requires a
 * token, asks the person for one and retries.
 * @param {string} path
 * @param {RequestInit} [init]
 * @returns {Promise<Response>} only successful ones
 * @throws {CallError}
 */
export async function send(path, init = {}) {
  const res = await fetchWithToken(path, init);
  if (res.ok) {
    return res;
  }
  const err = await readError(res);
  if (res.status === 401 && deployment === null && (await askForToken(err.message))) {
    return send(path, init);
  }
  throw err;
}

/**
 * Sends a request and reads the response as JSON.
 * @param {string} path
 * @param {RequestInit} [init]
 * @returns {Promise<any>}
 */
export async function sendForJson(path, init) {
  return (await send(path, init)).json();
}

/**
 * The path of an endpoint, or of what is below it.
 * @param {string} route of the endpoint
 * @param {string} [verb]
 */
export function pathBelow(route, verb) {
  return verb === undefined ? route : `${route.replace(/\/$/, "")}/${verb}`;
}

/**
 * The path of one verb of a task.
 * @param {string} route of its endpoint
 * @param {string} verb
 * @param {string} taskId
 * @param {Record<string, string>} [more]
 */
export function taskPath(route, verb, taskId, more = {}) {
  return `${pathBelow(route, verb)}?${new URLSearchParams({ task_id: taskId, ...more })}`;
}

/**
 * @param {string} path
 * @param {RequestInit} init
 */
async function fetchWithToken(path, init) {
  const headers = new Headers({
    ...Object.fromEntries(new Headers(init.headers)),
    ...targetHeaders(),
  });
  const token = currentToken();
  if (token && deployment === null) {
    headers.set("authorization", `Bearer ${token}`);
  }
  try {
    return await fetch(path, { ...init, headers });
  } catch (err) {
    if (init.signal?.aborted) {
      throw err;
    }
    throw new CallError("The server cannot be reached. Is it still running?", {
      code: "unavailable",
    });
  }
}

/** @param {Response} res */
async function readError(res) {
  const { status } = res;
  const retryAfter = res.headers.get("retry-after");
  const text = await res.text();
  try {
    const { code, message, details = [] } = JSON.parse(text);
    /** @param {string} type */
    const detail = (type) =>
      details.find((/** @type {any} */ one) => one.type === type)?.debug ?? {};
    return new CallError(message, {
      status,
      code,
      reason: detail("google.rpc.ErrorInfo").reason,
      violations: detail("google.rpc.BadRequest").fieldViolations,
      retryAfter,
    });
  } catch {
    return new CallError(text || res.statusText || `HTTP ${status}`, { status, retryAfter });
  }
}
