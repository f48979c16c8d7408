/** The answer to unknown RPCs, in the caller's protocol. */
import { Code } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { problem } from "../../../errors.ts";
import { errorJson, sendProblem } from "../../http/problem.ts";

/** Flag of the envelope that ends a Connect stream. */
const END_STREAM = 2;

/** The path of an RPC: it has a dot after the package, which the name of an endpoint never has. */
const RPC_PATH = /^\/\w+\.[\w.]+\/[^/?]+(?:\?|$)/;

/**
 * Answers requests without a route: unknown RPCs with `unimplemented`, others
 * with `other`. Unknown RPCs have no route, because its pattern would be
 * tried for every call of an endpoint.
 */
export function answerUnknown(
  app: FastifyInstance,
  other: (req: FastifyRequest, reply: FastifyReply) => FastifyReply,
): void {
  app.setNotFoundHandler((req, reply) => {
    const isRpc = req.method === "POST" && RPC_PATH.test(req.url);
    return isRpc ? sendUnimplemented(req, reply) : other(req, reply);
  });
}

/** Answers callers of gRPC, gRPC-Web and Connect. */
function sendUnimplemented(req: FastifyRequest, reply: FastifyReply): FastifyReply {
  const [path = ""] = req.url.split("?");
  const message = `there is no RPC ${path.slice(1)}; ask the server's reflection for what there is`;
  const found = problem("ROUTE_NOT_FOUND", message, { code: Code.Unimplemented });
  const type = req.headers["content-type"] ?? "";
  // Discards the body, for which the stream would otherwise wait.
  req.raw.resume();
  if (/^application\/grpc/i.test(type)) {
    // "Trailers-Only": https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
    return reply
      .header("content-type", type)
      .header("grpc-status", String(found.code))
      .header("grpc-message", encodeURIComponent(message))
      .send();
  }
  if (/^application\/connect\+/i.test(type)) {
    const json = Buffer.from(JSON.stringify({ error: errorJson(found) }));
    const prefix = Buffer.alloc(5);
    prefix.writeUInt8(END_STREAM, 0);
    prefix.writeUInt32BE(json.length, 1);
    return reply.header("content-type", type).send(Buffer.concat([prefix, json]));
  }
  // Not 501, which is for RPCs that are known: https://connectrpc.com/docs/protocol#error-codes
  return sendProblem(reply, found, { status: 404, type: "application/json" });
}
