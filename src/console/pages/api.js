// @ts-check
/** A client of the REST API with this browser's session. */

/** @typedef {{user_id: string, email: string}} Person */

/** An error response of the server. */
export class CallError extends Error {
  /**
   * @param {string} message
   * @param {number} [status]
   */
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/**
 * Calls a method of the REST API with the session of this browser.
 * @param {string} path
 * @param {object} [body] makes it a POST
 * @returns {Promise<any>}
 * @throws {CallError}
 */
export async function call(path, body) {
  /** @type {RequestInit} */
  const init = body
    ? {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }
    : {};
  let res;
  try {
    res = await fetch(path, init);
  } catch {
    throw new CallError("The server cannot be reached. Is it still running?");
  }
  const text = await res.text();
  if (!res.ok) {
    throw readError(res, text);
  }
  return text === "" ? {} : JSON.parse(text);
}

/**
 * @param {Response} res
 * @param {string} text
 */
function readError({ status, statusText }, text) {
  try {
    return new CallError(JSON.parse(text).message, status);
  } catch {
    // A proxy responded in its own format.
    return new CallError(statusText || `HTTP ${status}`, status);
  }
}

/**
 * Returns the signed-in person, if any.
 * @returns {Promise<Person | undefined>}
 */
export async function currentPerson() {
  try {
    return await call("/api/v1/me");
  } catch (err) {
    if (err instanceof CallError && err.status === 401) {
      return undefined;
    }
    throw err;
  }
}
