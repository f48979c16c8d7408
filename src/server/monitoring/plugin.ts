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
import type { Federation } from "../../metrics/federation.ts";
import type { Metrics } from "../../metrics/metrics.ts";
import { MatchError } from "../../metrics/selector/error.ts";
import { UpstreamError } from "../../metrics/upstream.ts";
import { sendProblem } from "../http/problem.ts";
import { requestLog } from "../http/request-log.ts";
import type { Monitored } from "../rpc/federation.ts";
import { valuesOf } from "./query.ts";
import { sendText } from "./send.ts";

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
