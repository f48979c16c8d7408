/** Calls of the data plane over real HTTP. */

/** Longer than any answer takes from a node that is well. */
const TIMEOUT_MS = 5_000;
/** For what is stored of a task that has not ended. */
const PEEK_MS = 2_000;

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export interface Request {
  readonly method?: "GET" | "POST" | "PUT";
  readonly values?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** How long the server was asked to wait. */
  readonly waitSeconds?: number;
}

/** The lines that have come of an answer that does not end, such as the events of a task that runs. */
export async function peek(url: string, { headers = {} }: Request = {}): Promise<string> {
  let text = "";
  try {
    const res = await fetch(url, { headers, signal: AbortSignal.timeout(PEEK_MS) });
    for await (const part of res.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += part;
    }
  } catch {
    // The time was over, or there is no answer.
  }
  return text.slice(0, text.lastIndexOf("\n") + 1);
}

/** The answer; undefined when there was none: then nobody knows whether it was done. */
export async function ask(url: string, request: Request = {}): Promise<Answer | undefined> {
  const { method = "GET", values, headers = {}, waitSeconds = 0 } = request;
  try {
    const res = await fetch(url, {
      method,
      headers: { "content-type": "application/json", ...headers },
      signal: AbortSignal.timeout(TIMEOUT_MS + waitSeconds * 1_000),
      ...(values !== undefined && { body: JSON.stringify(values) }),
    });
    return { status: res.status, text: await res.text() };
  } catch {
    return undefined;
  }
}

/** False when the same request may be answered otherwise later: no answer, 429 or 503. */
export function isDefinite(answer: Answer | undefined): answer is Answer {
  return answer !== undefined && answer.status !== 429 && answer.status !== 503;
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Not every answer is JSON.
    return undefined;
  }
}
