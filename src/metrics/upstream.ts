/**
 * A Prometheus that scrapes the platform already, asked in place of this
 * node's own memory: it has the series of all nodes, and a history besides.
 * It has those of all organizations too, so each selector gets one condition
 * more before it is sent. Whatever answers `/federate` as Prometheus does will
 * do (VictoriaMetrics does; a Thanos querier does not).
 */
import { equals, type Selector } from "./selector/parse.ts";
import { writeSelector } from "./selector/write.ts";

/** How long the answer may take to begin and to end. */
const TIMEOUT_MS = 60_000;

/** The longest address that is asked for; servers refuse longer ones. */
const MAX_URL_LENGTH = 500_000;

/** The other Prometheus did not answer as it should; the message is for the caller. */
export class UpstreamError extends Error {}

export interface UpstreamQuery {
  /** Name of the organization, as the label `organization` has it. */
  readonly organization: string;
  readonly selectors: readonly Selector[];
  readonly signal?: AbortSignal;
}

export class Upstream {
  readonly #url: URL;
  readonly #headers: { readonly [name: string]: string };

  /** `address` may have a path, as behind a proxy, and a user and a password. */
  constructor(address: string) {
    const url = new URL(address);
    const { username, password } = url;
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    this.#headers =
      username === ""
        ? {}
        : { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` };
    url.username = "";
    url.password = "";
    url.pathname = `${url.pathname.replace(/\/$/, "")}/federate`;
    url.search = "";
    this.#url = url;
  }

  /** Its answer, as it comes. Throws an UpstreamError. */
  async federate({ organization, selectors, signal }: UpstreamQuery): Promise<Chunks> {
    const own = equals("organization", organization);
    const texts = selectors
      // Without a condition a selector selects nothing; with ours it would select everything.
      .filter(({ matchers }) => matchers.length > 0)
      .map(({ matchers }) => writeSelector({ matchers: [...matchers, own] }));
    if (texts.length === 0) {
      return nothing();
    }
    const url = new URL(this.#url);
    for (const text of texts) {
      url.searchParams.append("match[]", text);
    }
    if (url.href.length > MAX_URL_LENGTH) {
      throw new UpstreamError("the selectors are too long to be handed on: join or shorten them");
    }
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    let response: Response;
    try {
      response = await fetch(url, {
        headers: this.#headers,
        redirect: "error",
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      });
    } catch (err) {
      throw new UpstreamError("the Prometheus behind this platform cannot be reached", {
        cause: err,
      });
    }
    if (response.status !== 200 || response.body === null) {
      await response.body?.cancel();
      throw new UpstreamError(
        `the Prometheus behind this platform answered with status ${response.status}`,
      );
    }
    return response.body;
  }
}

type Chunks = AsyncIterable<Uint8Array>;

async function* nothing(): AsyncGenerator<Uint8Array> {}
