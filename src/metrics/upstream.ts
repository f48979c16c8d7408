/**
 * A client of an upstream Prometheus that scrapes the platform. Federation
 * queries it instead of this node's memory, because it has the series of all
 * nodes, with history. It also has those of all organizations, so each selector
 * gets a condition on the organization before it is sent. Any server with
 * Prometheus' `/federate` works (VictoriaMetrics does; a Thanos querier does
 * not).
 */
import { LABEL_NAME } from "./labels.ts";
import { equals, type Matcher, type Selector } from "./selector/parse.ts";

/** How long the answer of the Prometheus behind `/federate` may take to begin and to end. */
const PROMETHEUS_TIMEOUT_MS = 60_000;

/** Address that the Prometheus behind `/federate` is asked by; servers refuse longer ones. */
const MAX_PROMETHEUS_URL_CHARACTERS = 500_000;

/** The upstream failed; the message is for the caller. */
export class UpstreamError extends Error {}

interface UpstreamQuery {
  /** The organization's name, as in the label `organization`. */
  readonly organization: string;
  readonly selectors: readonly Selector[];
  readonly signal?: AbortSignal;
}

export class Upstream {
  readonly #url: URL;
  readonly #headers: { readonly [name: string]: string };

  /** `address` may have a path (behind a proxy), a user and a password. */
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
    url.pathname = url.pathname.replace(/\/$/, "");
    url.search = "";
    this.#url = url;
  }

  /** Returns the response as a stream. Throws an UpstreamError. */
  async federate({ organization, selectors, signal }: UpstreamQuery): Promise<Chunks> {
    const own = equals("organization", organization);
    const texts = selectors
      // A selector without a matcher selects nothing; with our condition it would
      // select everything.
      .filter(({ matchers }) => matchers.length > 0)
      .map(({ matchers }) => writeSelector({ matchers: [...matchers, own] }));
    if (texts.length === 0) {
      return nothing();
    }
    const url = new URL(this.#url);
    url.pathname = `${url.pathname.replace(/\/$/, "")}/federate`;
    for (const text of texts) {
      url.searchParams.append("match[]", text);
    }
    if (url.href.length > MAX_PROMETHEUS_URL_CHARACTERS) {
      throw new UpstreamError("the selectors are too long to be handed on: join or shorten them");
    }
    return await this.#get(url, signal);
  }

  async #get(url: URL, signal: AbortSignal | undefined): Promise<Chunks> {
    const timeout = AbortSignal.timeout(PROMETHEUS_TIMEOUT_MS);
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

// The serializer of selectors. It writes from the parsed form only, so no
// unparsed text of a caller gets through.

/** Writes `{__name__="up",job=~"a|b"}`, which every version of Prometheus reads. */
export function writeSelector({ matchers }: Selector): string {
  return `{${matchers.map(writeMatcher).join(",")}}`;
}

function writeMatcher({ label, operator, value }: Matcher): string {
  return `${LABEL_NAME.test(label) ? label : quote(label)}${operator}${quote(value)}`;
}

/** The surrogate of a lone byte: see `readQuoted`. */
const LONE_BYTE = 0xdc00;

/** Writes an ASCII literal. */
function quote(text: string): string {
  let quoted = "";
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    if (character === '"' || character === "\\") {
      quoted += `\\${character}`;
    } else if (code >= 0x20 && code < 0x7f) {
      quoted += character;
    } else if (code >= LONE_BYTE && code <= LONE_BYTE + 0xff) {
      quoted += `\\x${(code - LONE_BYTE).toString(16).padStart(2, "0")}`;
    } else {
      quoted += `\\U${code.toString(16).padStart(8, "0")}`;
    }
  }
  return `"${quoted}"`;
}
