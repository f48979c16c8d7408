/** StreamEndpoint: the pieces of a result as messages; and the whole of one, for CallEndpoint. */
import { create } from "@bufbuild/protobuf";
import type { HandlerContext } from "@connectrpc/connect";
import {
  PieceForm,
  type StreamEndpointRequest,
  type StreamEndpointResponse,
  StreamEndpointResponseSchema,
} from "../../../gen/tessera/v1/endpoint_pb.js";
import { ResultFormat } from "../../../gen/tessera/v1/task_pb.js";
import { problem } from "../../errors.ts";
import type { Piece } from "../../pool/calls/received-chunks.ts";
import type { ResponseHead } from "../../protocol/heads.ts";
import type { EndpointManifest, StreamManifest } from "../../protocol/manifest.ts";
import type { Payload } from "../../protocol/messages.ts";
import { bodyMessage } from "../../server/http/body.ts";
import { type StreamedBodies, streamedBodies } from "../../server/http/streamed-bodies.ts";
import { namedWorker, WORKER_HEADER } from "../../server/http/worker-header.ts";
import { keyOfCall, tellsQuota, tokenIdOf, tracedStream } from "../../server/rpc/engine/caller.ts";
import { deploymentOf } from "../../server/rpc/interceptors/access.ts";
import { pieceTypeOf } from "../../service/piece-type.ts";
import { inputOf, releaseArguments, shownRequest, withRequest } from "./messages.ts";
import { MAX_RESULT_MESSAGE_BYTES, toValue } from "./value.ts";

/** The form of an endpoint's pieces in messages. */
export const PIECE_FORMS = {
  json: PieceForm.JSON,
  text: PieceForm.TEXT,
  bytes: PieceForm.BYTES,
} as const;

/** Streams a call of an api endpoint. */
export async function* streamEndpoint(
  req: StreamEndpointRequest,
  ctx: HandlerContext,
): AsyncGenerator<StreamEndpointResponse, void, undefined> {
  const deployment = deploymentOf(ctx);
  deployment.admit("api", tokenIdOf(ctx.values));
  const { manifest, reader } = deployment.endpoint(req.endpoint);
  if (manifest.stream === undefined || manifest.kind !== "api") {
    const description = `${manifest.name} is no api that streams: call it with CallEndpoint`;
    const violations = [{ field: "endpoint", description }];
    throw problem("REQUEST_INVALID", `endpoint ${description}`, { violations });
  }
  const { pieces: form } = manifest.stream;
  const contentType = pieceTypeOf(form, manifest);
  const keeper = deployment.files.api;
  const { signal } = ctx;
  const bodies = ctx.values.get(streamedBodies);
  const request = shownRequest(ctx, manifest);
  const read = await reader.read(inputOf(req.input, bodies), keeper, deployment.readers);
  try {
    const payload = withRequest(read, request);
    const pieces = tracedStream(ctx, deployment, {
      endpoint: manifest.name,
      run: (origin) =>
        deployment.calls.stream(manifest, payload, {
          ...{ signal, origin, key: keyOfCall(ctx, manifest) },
          ...tellsQuota(ctx, manifest),
          ...inNamedWorker(ctx),
          ...takesHead(bodies),
        }),
    });
    let sequence = 0n;
    for await (const piece of pieces) {
      sequence += 1n;
      const format = req.resultFormat;
      yield pieceMessage(piece, { endpoint: manifest.name, sequence, form, contentType, format });
    }
  } finally {
    await releaseArguments(read, keeper);
  }
}

/**
 * Has a call run in the worker that its request names, and says in the answer which one it was, to
 * who asks for it.
 */
export function inNamedWorker({ requestHeader, responseHeader }: HandlerContext) {
  const header = requestHeader.get(WORKER_HEADER);
  if (header === null) {
    return undefined;
  }
  const onWorker = (id: string): void => responseHeader.set(WORKER_HEADER, id);
  return { worker: namedWorker(header), onWorker };
}

/** Puts what the function says of its answer beside the messages, where there is a place for it. */
export function takesHead(bodies: StreamedBodies | undefined) {
  if (bodies === undefined) {
    return undefined;
  }
  const onResponse = (head: ResponseHead): void => {
    bodies.head = head;
  };
  return { onResponse };
}

interface PieceOf {
  readonly endpoint: string;
  readonly sequence: bigint;
  /** What the endpoint streams. */
  readonly form: StreamManifest["pieces"];
  readonly contentType: string;
  readonly format: ResultFormat;
}

function pieceMessage(
  piece: Piece,
  { endpoint, sequence, form, contentType, format }: PieceOf,
): StreamEndpointResponse {
  if (typeof piece !== "string" || format === ResultFormat.BODY) {
    const data = typeof piece === "string" ? Buffer.from(piece) : piece;
    const value = bodyMessage(contentType, data);
    return {
      $typeName: "tessera.v1.StreamEndpointResponse",
      sequence,
      piece: { case: "body", value },
    };
  }
  const text = form === "text" ? JSON.stringify(piece) : piece;
  const value = toValue(text, { what: `piece ${sequence}`, from: `POST /${endpoint}` });
  return create(StreamEndpointResponseSchema, { sequence, piece: { case: "value", value } });
}

/** The whole of a streamed result. Errors: those of the stream; RESULT_TOO_LARGE, which aborts it. */
export async function wholeOf(
  pieces: AsyncIterable<Piece>,
  manifest: EndpointManifest,
): Promise<Payload> {
  const all: Piece[] = [];
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += Buffer.byteLength(piece);
    if (bytes > MAX_RESULT_MESSAGE_BYTES) {
      const message = `the result of ${manifest.name} is larger than ${MAX_RESULT_MESSAGE_BYTES} bytes, which is the limit for a whole one: stream it`;
      throw problem("RESULT_TOO_LARGE", message);
    }
    all.push(piece);
  }
  switch (manifest.stream?.pieces) {
    case "bytes": {
      const data = Buffer.concat(all as Uint8Array[]);
      return { json: "0", files: [{ contentType: pieceTypeOf("bytes", manifest), data }] };
    }
    case "text":
      return { json: JSON.stringify(all.join("")), files: [] };
    default:
      return { json: `[${all.join()}]`, files: [] };
  }
}
