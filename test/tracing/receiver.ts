/** An OTLP receiver on loopback: takes what exporters send, and decodes it. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";

/** A span as it was sent; times in milliseconds since 1970. */
export interface ReceivedSpan {
  readonly name: string;
  /** 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root. */
  readonly parentId: string;
  readonly traceState: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly failed: boolean;
  readonly resource: Attributes;
}

export type Attributes = { readonly [name: string]: string | number | boolean | undefined };

export class OtlpReceiver implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  /** Of each request. */
  readonly headers: { readonly [name: string]: string | string[] | undefined }[] = [];
  /** What it answers. */
  status = 200;
  readonly #server = createServer(async (req, res) => {
    const body = await buffer(req);
    this.headers.push(req.headers);
    if (this.status === 200 && req.url === "/v1/traces") {
      this.spans.push(...decode(body));
    }
    res.writeHead(this.status).end();
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  });
  #changed = Promise.withResolvers<void>();

  static async start(): Promise<OtlpReceiver> {
    const receiver = new OtlpReceiver();
    await new Promise<void>((resolve) => receiver.#server.listen(0, "127.0.0.1", resolve));
    return receiver;
  }

  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Resolves when this is true of what has come. */
  async until(enough: (receiver: this) => boolean): Promise<void> {
    while (!enough(this)) {
      await this.#changed.promise;
    }
  }

  /** The spans that are about a task, or of these names, once there are so many; by their beginning. */
  async find(count: number, of: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan[]> {
    await this.until(({ spans }) => spans.filter(of).length >= count);
    return this.spans.filter(of).sort((a, b) => a.startMs - b.startMs || a.endMs - b.endMs);
  }

  /** Forgets what has come. */
  clear(): void {
    this.spans.length = 0;
    this.headers.length = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

type Value = bigint | Uint8Array;
type Fields = ReadonlyMap<number, readonly Value[]>;

/** opentelemetry/proto/collector/trace/v1/trace_service.proto, as far as it is looked at here. */
function decode(body: Uint8Array): ReceivedSpan[] {
  return messages(fieldsOf(body), 1).flatMap((resourceSpans) => {
    const [resource] = messages(resourceSpans, 1);
    const attributes = resource === undefined ? {} : attributesOf(resource, 1);
    return messages(resourceSpans, 2)
      .flatMap((scopeSpans) => messages(scopeSpans, 2))
      .map((span) => toSpan(span, attributes));
  });
}

function toSpan(span: Fields, resource: Attributes): ReceivedSpan {
  const [status] = messages(span, 15);
  return {
    traceId: hex(span, 1),
    spanId: hex(span, 2),
    traceState: text(span, 3),
    parentId: hex(span, 4),
    name: text(span, 5),
    kind: Number(number(span, 6)),
    startMs: Number(number(span, 7)) / 1e6,
    endMs: Number(number(span, 8)) / 1e6,
    attributes: attributesOf(span, 9),
    links: messages(span, 13).map((link) => ({ traceId: hex(link, 1), spanId: hex(link, 2) })),
    failed: status !== undefined && number(status, 3) === 2n,
    resource,
  };
}

function attributesOf(message: Fields, field: number): Attributes {
  return Object.fromEntries(
    messages(message, field).map((pair) => {
      const [value] = messages(pair, 2);
      return [text(pair, 1), value && readValue(value)];
    }),
  );
}

function readValue(value: Fields): string | number | boolean | undefined {
  if (value.has(1)) {
    return text(value, 1);
  }
  if (value.has(2)) {
    return number(value, 2) === 1n;
  }
  return value.has(3) ? Number(number(value, 3)) : undefined;
}

function fieldsOf(bytes: Uint8Array): Fields {
  const reader = new BinaryReader(bytes);
  const fields = new Map<number, Value[]>();
  while (reader.pos < reader.len) {
    const [field, wireType] = reader.tag();
    const values = fields.get(field) ?? [];
    fields.set(field, values);
    switch (wireType) {
      case WireType.Varint:
        values.push(BigInt(reader.uint64()));
        break;
      case WireType.Bit64:
        values.push(BigInt(reader.fixed64()));
        break;
      case WireType.LengthDelimited:
        values.push(reader.bytes());
        break;
      default:
        reader.skip(wireType, field);
    }
  }
  return fields;
}

function messages(fields: Fields, field: number): Fields[] {
  const values = fields.get(field) ?? [];
  return values.filter((value) => typeof value !== "bigint").map(fieldsOf);
}

function bytes(fields: Fields, field: number): Buffer {
  const [value = new Uint8Array()] = fields.get(field) ?? [];
  return typeof value === "bigint" ? Buffer.alloc(0) : Buffer.from(value);
}

function number(fields: Fields, field: number): bigint {
  const [value = 0n] = fields.get(field) ?? [];
  return typeof value === "bigint" ? value : 0n;
}

function hex(fields: Fields, field: number): string {
  return bytes(fields, field).toString("hex");
}

function text(fields: Fields, field: number): string {
  return bytes(fields, field).toString();
}
