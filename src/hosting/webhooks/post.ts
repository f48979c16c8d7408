/**
 * POST to an address that a caller has named. It is judged as what workers connect to: refused where
 * it is not public, and connected to at the address that was judged, so that a name which resolves
 * to another the next time gains nothing. Redirects are not followed, and of the answer little is
 * read.
 */
import { request } from "node:http";
import type { Resolve } from "../../pool/egress/dial.ts";
import { dialUrl } from "../../pool/egress/dial-url.ts";
import type { EgressPolicy } from "../../pool/egress/policy.ts";
import { EgressFailedError, EgressRefusedError } from "../../pool/egress/refusals.ts";
import { version } from "../../version.ts";

/** How long one attempt may take, from the look at the name to the end of what is read. */
export const DELIVERY_TIMEOUT_MS = 15_000;
/** Of an answer, what is read and kept. */
const MAX_ANSWER_BYTES = 1_024;
/** Headers of an answer. */
const MAX_ANSWER_HEADER_BYTES = 16 * 1_024;

export interface PostOptions {
  readonly policy: EgressPolicy;
  /** Default: the resolver of the operating system. */
  readonly resolve?: Resolve | undefined;
  readonly signal: AbortSignal;
  /** Default: 15 s. */
  readonly timeoutMs?: number | undefined;
}

/** What a receiver answered; `error` says why there is no answer. */
export interface PostAnswer {
  /** 0 without an answer. */
  readonly status: number;
  readonly text: string;
  readonly error: string;
}

/** Sends a body as JSON. Never rejects: what went wrong is in the answer. */
export async function post(
  url: URL,
  { headers, body }: { readonly headers: Record<string, string>; readonly body: string },
  { policy, resolve, signal: stopping, timeoutMs = DELIVERY_TIMEOUT_MS }: PostOptions,
): Promise<PostAnswer> {
  const timeout = AbortSignal.timeout(timeoutMs);
  const signal = AbortSignal.any([stopping, timeout]);
  try {
    const socket = await dialUrl(url, { policy, resolve, signal, idleMs: timeoutMs });
    try {
      return await new Promise<PostAnswer>((settle, reject) => {
        const bytes = Buffer.from(body);
        const req = request({
          method: "POST",
          path: `${url.pathname}${url.search}`,
          headers: {
            ...headers,
            host: url.host,
            "content-type": "application/json",
            "content-length": bytes.length,
            "user-agent": `tessera/${version}`,
            connection: "close",
          },
          maxHeaderSize: MAX_ANSWER_HEADER_BYTES,
          createConnection: () => socket,
          signal,
        });
        let hasStatus = false;
        // With a status, the end of the answer says the rest.
        req.on("error", (err) => hasStatus || reject(err));
        // Whatever else ends it without an answer.
        req.on("close", () => hasStatus || reject(new Error("no answer")));
        // To speak another protocol is no success, and nothing of it is read.
        req.on("upgrade", ({ statusCode: status = 0 }) => {
          hasStatus = true;
          settle({ status, text: "", error: "" });
        });
        req.on("response", (res) => {
          hasStatus = true;
          const { statusCode: status = 0 } = res;
          const chunks: Buffer[] = [];
          let length = 0;
          const end = (): void => {
            const text = Buffer.concat(chunks).subarray(0, MAX_ANSWER_BYTES).toString();
            settle({ status, text, error: "" });
          };
          res.on("data", (chunk: Buffer) => {
            chunks.push(chunk);
            length += chunk.length;
            if (length >= MAX_ANSWER_BYTES) {
              end();
              res.destroy();
            }
          });
          // The status counts, also where the body breaks off.
          res.on("end", end).on("error", end).on("close", end);
        });
        req.end(bytes);
      });
    } finally {
      socket.destroy();
    }
  } catch (err) {
    return { status: 0, text: "", error: errorText(err, url, timeout.aborted && timeoutMs) };
  }
}

function errorText(err: unknown, url: URL, lateMs: number | false): string {
  if (lateMs !== false) {
    return `${url.host} took longer than ${lateMs / 1_000} s`;
  }
  if (err instanceof EgressRefusedError || err instanceof EgressFailedError) {
    return err.message;
  }
  const { code = (err as Error).message } = err as NodeJS.ErrnoException;
  return `${url.host} broke off: ${code}`;
}
