/** "There is no such RPC", in whichever protocol the caller speaks. */
import { Code } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { problem } from "../../../errors.ts";
import { errorJson, sendProblem } from "../../http/problem.ts";
import { connectStatus } from "../../http/status.ts";

/** Flag of the envelope that ends a Connect stream. */
const END_STREAM = 2;

/** The path of an RPC: a package's name has a dot, an endpoint's has not. */
const RPC_PATH = /^\/\w+\.[\w.]+\/[^/?]+(?:\?|$)/;

/**
 * Answers what a server has no route for: unknown RPCs with `unimplemented`,
 * the rest with `other`. They have no route of their own, whose pattern would
 * be tried for every call of an endpoint.
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

/** For gRPC, gRPC-Web and Connect callers. */
function sendUnimplemented(req: FastifyRequest, reply: FastifyReply): FastifyReply {
  const [path = ""] = req.url.split("?");
  const message = `there is no RPC ${path.slice(1)}; ask the server's reflection for what there is`;
  const found = problem("ROUTE_NOT_FOUND", message, { code: Code.Unimplemented });
  const type = req.headers["content-type"] ?? "";
  // The body is not read: the stream would otherwise wait for it.
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
  return sendProblem(reply, found, { status: connectStatus(found.code), type: "application/json" });
}
