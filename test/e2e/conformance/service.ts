/** The suite's service, which answers as each request says and tells what it has seen of it. */
import { setTimeout } from "node:timers/promises";
import {
  create,
  type DescMessage,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { type Any, anyPack } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type Problem, problem } from "../../../src/errors.ts";
import {
  BidiStreamRequestSchema,
  ClientStreamRequestSchema,
  ConformancePayload_RequestInfoSchema,
  type ConformancePayloadSchema,
  type ConformanceService,
  type Error as ErrorDefinition,
  type Header,
  IdempotentUnaryRequestSchema,
  ServerStreamRequestSchema,
  type StreamResponseDefinition,
  UnaryRequestSchema,
  type UnaryResponseDefinition,
} from "./gen/connectrpc/conformance/v1/service_pb.js";

type Payload = MessageInitShape<typeof ConformancePayloadSchema>;
type RequestInfo = MessageInitShape<typeof ConformancePayload_RequestInfoSchema>;

/** `unimplemented` is left out: that is what the suite asks of it. */
export const conformance: Partial<ServiceImpl<typeof ConformanceService>> = {
  async unary(req, ctx) {
    const seen = infoOf(ctx, [packed(UnaryRequestSchema, req)]);
    return { payload: await answered(req.responseDefinition, ctx, seen) };
  },

  async idempotentUnary(req, ctx) {
    const seen = infoOf(ctx, [packed(IdempotentUnaryRequestSchema, req)]);
    return { payload: await answered(req.responseDefinition, ctx, seen) };
  },

  async *serverStream(req, ctx) {
    const seen = infoOf(ctx, [packed(ServerStreamRequestSchema, req)]);
    yield* rest(req.responseDefinition, ctx, { sent: 0, seen });
  },

  async clientStream(messages, ctx) {
    let definition: UnaryResponseDefinition | undefined;
    const requests: Any[] = [];
    for await (const req of messages) {
      if (requests.length === 0) {
        definition = req.responseDefinition;
      }
      requests.push(packed(ClientStreamRequestSchema, req));
    }
    return { payload: await answered(definition, ctx, infoOf(ctx, requests)) };
  },

  async *bidiStream(messages, ctx) {
    let definition: StreamResponseDefinition | undefined;
    let isFullDuplex = false;
    let isFirst = true;
    let sent = 0;
    let requests: Any[] = [];
    for await (const req of messages) {
      requests.push(packed(BidiStreamRequestSchema, req));
      if (isFirst) {
        isFirst = false;
        definition = req.responseDefinition;
        isFullDuplex = req.fullDuplex;
      }
      if (!isFullDuplex) {
        continue;
      }
      const data = definition?.responseData[sent];
      if (definition === undefined || data === undefined) {
        break;
      }
      // All that was seen goes with the first answer, and then what has come since the last one.
      const requestInfo = sent === 0 ? infoOf(ctx, requests) : { requests };
      setHeaders(definition, ctx);
      await delay(definition, ctx);
      yield { payload: { data, requestInfo } };
      requests = [];
      sent++;
    }
    yield* rest(definition, ctx, { sent, seen: infoOf(ctx, requests) });
  },
};

/** Answers a call that has one answer. */
async function answered(
  definition: UnaryResponseDefinition | undefined,
  ctx: HandlerContext,
  requestInfo: RequestInfo,
): Promise<Payload> {
  if (definition === undefined) {
    return { requestInfo };
  }
  const { response } = definition;
  setHeaders(definition, ctx);
  await delay(definition, ctx);
  if (response.case === "error") {
    throw errorOf(response.value, requestInfo);
  }
  return { requestInfo, ...(response.case === undefined ? {} : { data: response.value }) };
}

/** Sends what is left of a stream's answers, and its error. What was seen goes with the first of them. */
async function* rest(
  definition: StreamResponseDefinition | undefined,
  ctx: HandlerContext,
  { sent, seen }: { readonly sent: number; readonly seen: RequestInfo },
): AsyncGenerator<{ payload: Payload }> {
  if (definition === undefined) {
    return;
  }
  setHeaders(definition, ctx);
  for (const [at, data] of [...definition.responseData.entries()].slice(sent)) {
    await delay(definition, ctx);
    yield { payload: at === 0 ? { data, requestInfo: seen } : { data } };
  }
  if (definition.error !== undefined) {
    const isAlone = sent === 0 && definition.responseData.length === 0;
    throw errorOf(definition.error, isAlone ? seen : undefined);
  }
}

type Definition = UnaryResponseDefinition | StreamResponseDefinition;

function setHeaders(definition: Definition, ctx: HandlerContext): void {
  put(definition.responseHeaders, ctx.responseHeader);
  put(definition.responseTrailers, ctx.responseTrailer);
}

function put(fields: readonly Header[], headers: Headers): void {
  for (const { name, value } of fields) {
    headers.delete(name);
    for (const each of value) {
      headers.append(name, each);
    }
  }
}

async function delay({ responseDelayMs }: Definition, { signal }: HandlerContext): Promise<void> {
  if (responseDelayMs > 0) {
    await setTimeout(responseDelayMs, undefined, { signal });
  }
}

/** The error that was asked for, with these details and no other: the suite compares them. */
function errorOf(
  { code, message, details }: ErrorDefinition,
  requestInfo: RequestInfo | undefined,
): Problem {
  const error = problem("CALL_FAILED", message ?? "", { code: code as number });
  error.details = details.map(({ typeUrl, value }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
    value,
  }));
  if (requestInfo !== undefined) {
    const desc = ConformancePayload_RequestInfoSchema;
    error.details.push({ type: desc.typeName, value: toBinary(desc, create(desc, requestInfo)) });
  }
  return error;
}

function infoOf(ctx: HandlerContext, requests: Any[]): RequestInfo {
  const timeoutMs = ctx.timeoutMs();
  return {
    requests,
    requestHeaders: headersOf(ctx.requestHeader),
    ...(timeoutMs === undefined ? {} : { timeoutMs: BigInt(Math.round(timeoutMs)) }),
    ...(ctx.requestMethod === "GET" && { connectGetInfo: { queryParams: paramsOf(ctx.url) } }),
  };
}

function headersOf(headers: Headers): NonNullable<RequestInfo["requestHeaders"]> {
  return [...headers].map(([name, value]) => ({ name, value: value.split(", ") }));
}

function paramsOf(url: string): { name: string; value: string[] }[] {
  const { searchParams } = new URL(url, "http://localhost");
  return [...searchParams].map(([name, value]) => ({ name, value: [value] }));
}

function packed<Desc extends DescMessage>(desc: Desc, message: MessageShape<Desc>): Any {
  return anyPack(desc, message);
}
