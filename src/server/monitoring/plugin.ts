/**
 * The Prometheus endpoints: `GET /federate` for an organization's Prometheus,
 * and `GET /metrics` for the operator's.
 *
 * `/federate` behaves exactly like Prometheus' own: it parses the selectors
 * before it checks whether it is ready, and describes an invalid selector in
 * plain text. Authentication comes first, as everywhere.
 *
 * `/metrics` shows every organization's numbers, so it needs the operator's
 * token. On a node without that token it answers nobody.
 */
import { timingSafeEqual } from "node:crypto";
import type { ContextValues } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { bearerToken } from "../../auth/bearer.ts";
import { problem, toProblem } from "../../errors.ts";
import { expose } from "../../metrics/exposition.ts";
import type { Federation, Monitored } from "../../metrics/federation.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { MatchError } from "../../metrics/selector/error.ts";
import { UpstreamError } from "../../metrics/upstream.ts";
import { sendProblem } from "../http/problem.ts";
import { requestLog } from "../http/request-log.ts";
import { sendText } from "./send.ts";

/** Query of `/federate`: what comes after would be more selectors than are allowed. */
const MAX_QUERY_CHARACTERS = 2_000_000;

interface MonitoringOptions {
  readonly metrics: Metrics;
  readonly federation: Federation;
  /** Authenticates a request. Errors: TOKEN_MISSING, TOKEN_INVALID. */
  readonly contextValues: (req: FastifyRequest) => ContextValues | Promise<ContextValues>;
  /** The metrics that the caller may read. Errors: ACCESS_DENIED, ORGANIZATION_NOT_FOUND. */
  readonly monitored: (values: ContextValues) => Monitored;
  /** False while the node starts or stops. */
  readonly isReady: () => boolean;
  /**
   * The token that `/metrics` asks for; undefined: it answers nobody. A caller
   * on this machine is not trusted either, because the code of deployments
   * runs here too.
   */
  readonly operatorToken?: string;
}

/** The Fastify plugin with both endpoints. */
export async function monitoringPlugin(
  app: FastifyInstance,
  options: MonitoringOptions,
): Promise<void> {
  const { metrics, operatorToken } = options;
  onlyGet(app, "/federate", (req, reply) => federateRoute(req, reply, options));
  onlyGet(app, "/metrics", (req, reply) => {
    if (operatorToken === undefined) {
      throw problem(
        "ACCESS_DENIED",
        "/metrics is for the operator: start the node with TESSERA_METRICS_TOKEN, and send it as a bearer token",
      );
    }
    if (!bears(req, operatorToken)) {
      throw problem("TOKEN_INVALID", "the token is not TESSERA_METRICS_TOKEN of the node");
    }
    return sendText(reply, expose(metrics));
  });
}

type Route = (req: FastifyRequest, reply: FastifyReply) => FastifyReply | Promise<FastifyReply>;

function onlyGet(app: FastifyInstance, url: string, route: Route): void {
  app.get(url, { exposeHeadRoute: false }, async (req, reply) => {
    try {
      return await route(req, reply);
    } catch (err) {
      return sendProblem(reply, toProblem(err));
    }
  });
}

async function federateRoute(
  req: FastifyRequest,
  reply: FastifyReply,
  { federation, contextValues, monitored, isReady }: MonitoringOptions,
): Promise<FastifyReply> {
  const whose = monitored(await contextValues(req));
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  try {
    const match = matchOf(req);
    const chunks = await federation.answer({ ...whose, match, signal: gone.signal });
    if (!isReady()) {
      gone.abort();
      return plain(reply, 503, "the server is not ready: it starts or stops");
    }
    return sendText(reply, chunks);
  } catch (err) {
    if (err instanceof MatchError) {
      return plain(reply, 400, err.message);
    }
    if (err instanceof UpstreamError) {
      requestLog(req).warn({ err }, err.message);
      return plain(reply, 502, err.message);
    }
    throw err;
  }
}

function matchOf({ url }: FastifyRequest): string[] {
  const at = url.indexOf("?");
  try {
    return at === -1 ? [] : valuesOf(url.slice(at + 1), "match[]");
  } catch (err) {
    const reason = err instanceof Error ? err.message : String(err);
    throw new MatchError(`error parsing form values: ${reason}`);
  }
}

function plain(reply: FastifyReply, status: number, message: string): FastifyReply {
  return reply.code(status).type("text/plain; charset=utf-8").send(`${message}\n`);
}

function bears(req: FastifyRequest, token: string): boolean {
  const given = bearerToken(req.headers.authorization) ?? "";
  const expected = Buffer.from(token);
  const actual = Buffer.from(given);
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

// The query parser of `/federate`, with Prometheus' rules: `+` is a space,
// escapes have to be valid, and `;` is no separator. Source: url.ParseQuery of
// Go.

/** All values of a parameter. Throws an Error that gives the reason. */
function valuesOf(query: string, name: string): string[] {
  if (query.length > MAX_QUERY_CHARACTERS) {
    throw new Error(
      `the query has ${query.length} characters, and ${MAX_QUERY_CHARACTERS} are allowed`,
    );
  }
  return query
    .split("&")
    .filter((pair) => pair !== "")
    .map((pair) => {
      if (pair.includes(";")) {
        throw new Error("invalid semicolon separator in query");
      }
      const at = pair.indexOf("=");
      const key = at === -1 ? pair : pair.slice(0, at);
      return [decode(key), decode(at === -1 ? "" : pair.slice(at + 1))] as const;
    })
    .filter(([key]) => key === name)
    .map(([, value]) => value);
}

function decode(text: string): string {
  const wrong = /%(?![0-9a-fA-F]{2}).{0,2}/s.exec(text);
  if (wrong) {
    throw new Error(`invalid URL escape ${JSON.stringify(wrong[0])}`);
  }
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw new Error("invalid UTF-8 in query");
  }
}
