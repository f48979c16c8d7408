/**
 * GET requests to places that callers name. The address of every host, of each redirect too, is
 * judged by the egress policy before it is connected to. A credential goes to the host that was
 * asked and to no other. Nothing waits for ever: neither the head of an answer nor its next bytes.
 */

import { type IncomingMessage, request } from "node:http";
import type { Socket } from "node:net";
import { readAtMost } from "../../collections/bytes.ts";
import { Problem } from "../../errors.ts";
import { dialUrl } from "../../pool/egress/dial-url.ts";
import type { EgressPolicy } from "../../pool/egress/policy.ts";
import { EgressRefusedError } from "../../pool/egress/refusals.ts";
import { version } from "../../version.ts";
import { sourceRefused, sourceUnavailable } from "./source.ts";

/** Redirects that one request follows: a mirror, its storage, and a few. */
const MAX_REDIRECTS = 5;
/** How long the head of an answer may take, and each wait for more of its body. */
const SOURCE_IDLE_TIMEOUT_MS = 60_000;
/** Answer that is read as JSON: a page of a list of files. */
const MAX_SOURCE_JSON_BYTES = 8 * 1024 ** 2;

interface GetOptions {
  readonly policy: EgressPolicy;
  readonly headers?: { readonly [name: string]: string };
  /** Sent to the first host alone. Empty: none. */
  readonly token?: string;
  readonly signal: AbortSignal;
}

/** Gets what is at a URL, after redirects. The caller reads or destroys the answer. */
export async function get(url: URL, options: GetOptions): Promise<IncomingMessage> {
  let at = url;
  let linkedEtag: string | undefined;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const { token = "" } = options;
    const isFirstHost = at.origin === url.origin;
    const answer = await getOnce(at, {
      ...options,
      headers: {
        ...options.headers,
        ...(isFirstHost && token !== "" && { authorization: `Bearer ${token}` }),
      },
    });
    const { statusCode = 0, headers } = answer;
    // Hugging Face names a file here, where the storage behind the redirect names a copy.
    linkedEtag ??= headers["x-linked-etag"]?.toString();
    if (statusCode < 300 || statusCode >= 400 || headers.location === undefined) {
      if (linkedEtag !== undefined) {
        headers.etag = linkedEtag;
      }
      return answer;
    }
    answer.destroy();
    const next = URL.parse(headers.location, at.href);
    if (next === null || !["http:", "https:"].includes(next.protocol)) {
      throw sourceRefused(`${at.host} redirects to what is no address of the web`);
    }
    if (at.protocol === "https:" && next.protocol === "http:") {
      throw sourceRefused(`${at.host} redirects to ${next.host} without encryption`);
    }
    at = next;
  }
  throw sourceRefused(`${url.host} redirects more than ${MAX_REDIRECTS} times`);
}

async function getOnce(
  url: URL,
  { policy, headers, signal }: Omit<GetOptions, "token">,
): Promise<IncomingMessage> {
  const socket = await connected(url, { policy, signal });
  try {
    signal.throwIfAborted();
    return await new Promise<IncomingMessage>((settle, reject) => {
      const req = request({
        method: "GET",
        path: `${url.pathname}${url.search}`,
        headers: { ...headers, host: url.host, "user-agent": `tessera/${version}` },
        createConnection: () => socket,
        timeout: SOURCE_IDLE_TIMEOUT_MS,
        signal,
      });
      req.on("response", settle);
      req.on("timeout", () => req.destroy(new Error(`silent for ${SOURCE_IDLE_TIMEOUT_MS} ms`)));
      req.on("error", reject);
      // Also where it answers that it will speak another protocol, which is no answer.
      req.on("close", () => reject(new Error("no answer")));
      req.end();
    });
  } catch (err) {
    socket.destroy();
    signal.throwIfAborted();
    throw sourceUnavailable(`${url.host} does not answer`, err);
  }
}

async function connected(
  url: URL,
  { policy, signal }: Pick<GetOptions, "policy" | "signal">,
): Promise<Socket> {
  try {
    return await dialUrl(url, { policy, signal, idleMs: SOURCE_IDLE_TIMEOUT_MS });
  } catch (err) {
    signal.throwIfAborted();
    throw err instanceof EgressRefusedError
      ? sourceRefused(err.message, err)
      : sourceUnavailable(`${url.host} cannot be reached`, err);
  }
}

/** Reads an answer as JSON. */
export async function readJson(answer: IncomingMessage, host: string): Promise<unknown> {
  try {
    const body = await readAtMost(answer, MAX_SOURCE_JSON_BYTES);
    if (body === undefined) {
      throw sourceRefused(`${host} answers with more than ${MAX_SOURCE_JSON_BYTES} bytes`);
    }
    return JSON.parse(body.toString());
  } catch (err) {
    if (err instanceof Problem) {
      throw err;
    }
    throw err instanceof SyntaxError
      ? sourceRefused(`${host} does not answer in JSON`, err)
      : sourceUnavailable(`${host} broke off its answer`, err);
  }
}
