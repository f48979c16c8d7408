/**
 * A node that the test plays: it answers WorkerService as the test says, so that it can do what a
 * real one does only by accident.
 */
import { createServer, type Http2Server } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import {
  type AssignmentSchema,
  type RegisterRequest,
  type ReportRequest,
  type TunnelRequest,
  type TunnelResponseSchema,
  WorkerService,
  type WorkRequest,
  type WorkResponseSchema,
} from "../../gen/tessera/v1/worker_pb.js";
import { RequestQueue } from "../../src/agent/request-queue.ts";
import type { BuiltArtifact } from "../../src/artifacts/build-options.ts";
import { writeIndex } from "../../src/artifacts/index-file.ts";
import { openFile } from "../../src/artifacts/pack.ts";

type Response = MessageInitShape<typeof WorkResponseSchema>;
type Handlers = ServiceImpl<typeof WorkerService>;

/** An error with a reason of the catalogue, as a node sends it. */
export function refusal(code: Code, reason: string, message: string): ConnectError {
  const info = { desc: ErrorInfoSchema, value: { domain: "tessera", reason } };
  return new ConnectError(message, code, undefined, [info]);
}

/** One Work stream of a worker. */
export class FakeStream {
  readonly session: string;
  readonly received: WorkRequest["message"][] = [];
  readonly #out = new RequestQueue<Response>();
  readonly #assigned: bigint[] = [];
  #fault: ConnectError | undefined;

  constructor(session: string) {
    this.session = session;
    this.send({ message: { case: "welcome", value: {} } });
  }

  send(response: Response): void {
    this.#out.send(response);
  }

  assign(...calls: MessageInitShape<typeof AssignmentSchema>[]): void {
    this.#assigned.push(...calls.map(({ id }) => id ?? 0n));
    this.send({ message: { case: "assignments", value: { calls, together: false } } });
  }

  end(fault?: ConnectError): void {
    this.#fault = fault;
    this.#out.end();
  }

  async *out(): AsyncGenerator<Response> {
    yield* this.#out;
    if (this.#fault) {
      throw this.#fault;
    }
  }

  /** What came of one kind. */
  all<Case extends NonNullable<WorkRequest["message"]["case"]>>(wanted: Case) {
    return this.received.flatMap((message) =>
      message.case === wanted
        ? [message.value as Extract<WorkRequest["message"], { case: Case }>["value"]]
        : [],
    );
  }

  /** The ends of calls. */
  get results() {
    return this.all("results").flatMap(({ results }) => results);
  }

  /** True when every call that was assigned has ended. */
  get isIdle(): boolean {
    const ended = new Set(this.results.map(({ id }) => id));
    return this.#assigned.every((id) => ended.has(id));
  }

  get slots(): Record<string, number> {
    return this.all("offer").at(-1)?.slots ?? {};
  }
}

type TunnelReply = MessageInitShape<typeof TunnelResponseSchema>;

/** A connection to a mounted server of the worker. */
export interface FakeTunnel {
  /** What the node sends. */
  readonly said: RequestQueue<TunnelReply>;
  received: string;
  hasEnded: boolean;
}

export class FakeNode implements AsyncDisposable {
  readonly registered: RegisterRequest[] = [];
  readonly streams: FakeStream[] = [];
  readonly reports: ReportRequest[] = [];
  /** By their numbers. */
  readonly tunnels = new Map<bigint, FakeTunnel>();
  /** The offsets at which files of the artifact were read. */
  readonly offsets: bigint[] = [];
  /** The settings of the next answers. */
  silenceMs = 15_000;
  answersHeartbeats = true;
  /** Whether results are acknowledged, and a worker that leaves is let go when it has no calls. */
  acknowledges = true;
  /** Which calls go on when a session is resumed. */
  keep: (request: RegisterRequest) => readonly bigint[] = ({ held }) => held.map(({ id }) => id);
  /** Throws to refuse. */
  onRegister: (request: RegisterRequest) => void = () => {};
  /** Returns the bytes of a message of a file, or throws to break the connection. */
  onChunk: (chunk: Uint8Array, offset: number) => Uint8Array = (chunk) => chunk;
  readonly #artifact: BuiltArtifact;
  readonly #server: Http2Server;
  readonly #sockets = new Set<Socket>();
  #sessions = 0;

  private constructor(artifact: BuiltArtifact) {
    this.#artifact = artifact;
    this.#server = createServer(
      connectNodeAdapter({ routes: (router) => router.service(WorkerService, this.#handlers()) }),
    );
    this.#server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  static async start(artifact: BuiltArtifact, port = 0): Promise<FakeNode> {
    const node = new FakeNode(artifact);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    node.#server.once("error", reject).listen(port, "127.0.0.1", resolve);
    await promise;
    return node;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The newest stream. */
  get stream(): FakeStream {
    const stream = this.streams.at(-1);
    if (stream === undefined) {
      throw new Error("no worker has opened a stream");
    }
    return stream;
  }

  /** Lines of the service and of the agent. */
  get lines(): string[] {
    return this.reports.flatMap(({ lines }) => lines.map(({ message }) => message));
  }

  /** Breaks every connection. */
  cut(): void {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#server.close(() => resolve());
    await promise;
  }

  #handlers(): Handlers {
    return {
      register: (request) => this.#register(request),
      work: (requests) => this.#work(requests),
      report: async (requests) => {
        for await (const request of requests) {
          this.reports.push(request);
        }
        return {};
      },
      readBlob: ({ source, offset }) => this.#read(String(source.value), Number(offset)),
      writeBlob: async (requests) => {
        let size = 0n;
        for await (const { data } of requests) {
          size += BigInt(data.length);
        }
        return { blobId: `blob-of-${size}`, size };
      },
      tunnel: (requests) => this.#tunnel(requests),
    };
  }

  async #register(request: RegisterRequest) {
    this.registered.push(request);
    this.onRegister(request);
    const isResumed = request.resumeSession !== "";
    this.#sessions += isResumed ? 0 : 1;
    return {
      workerId: `worker-${this.#sessions}`,
      session: `session-${this.#sessions}`,
      protocol: 1,
      heartbeatInterval: durationFromMs(this.silenceMs / 3),
      silenceLimit: durationFromMs(this.silenceMs),
      keep: isResumed ? [...this.keep(request)] : [],
      artifactIndex: Buffer.from(writeIndex(this.#artifact.index)),
      manifestJson: JSON.stringify(this.#artifact.index.service),
      revision: 1,
      settings: {
        env: { SECRET_OF_TEST: "from the node" },
        memoryMib: 256,
        cpus: 1,
        diskMib: 256,
        logLinesPerSecond: 1_000,
        networkAccess: "none",
        grace: durationFromMs(500),
        readyTimeout: durationFromMs(30_000),
        maxFileBytes: 64n * 1024n ** 2n,
        maxResultCharacters: 64n * 1024n ** 2n,
      },
    };
  }

  async *#tunnel(requests: AsyncIterable<TunnelRequest>): AsyncGenerator<TunnelReply> {
    const said = new RequestQueue<TunnelReply>();
    const tunnel: FakeTunnel = { said, received: "", hasEnded: false };
    const read = async (): Promise<void> => {
      for await (const { header, data } of requests) {
        if (header) {
          this.tunnels.set(header.id, tunnel);
        }
        tunnel.received += Buffer.from(data).toString();
      }
    };
    const over = read()
      .catch(() => {})
      .finally(() => {
        tunnel.hasEnded = true;
        said.end();
      });
    yield* said;
    await over;
  }

  async *#work(requests: AsyncIterable<WorkRequest>): AsyncGenerator<Response> {
    const incoming = requests[Symbol.asyncIterator]();
    const { value: first } = await incoming.next();
    if (first?.message.case !== "hello") {
      throw new ConnectError("no hello", Code.InvalidArgument);
    }
    const stream = new FakeStream(first.message.value.session);
    this.streams.push(stream);
    const rest = { [Symbol.asyncIterator]: () => incoming };
    void this.#receive(rest, stream).then(
      () => stream.end(),
      () => stream.end(),
    );
    yield* stream.out();
  }

  async #receive(requests: AsyncIterable<WorkRequest>, stream: FakeStream): Promise<void> {
    for await (const { message } of requests) {
      stream.received.push(message);
      if (message.case === "results" && this.acknowledges) {
        const ids = message.value.results.map(({ id }) => id);
        stream.send({ message: { case: "resultsAck", value: { ids, stale: [] } } });
      }
      if (this.acknowledges && stream.all("draining").length > 0 && stream.isIdle) {
        stream.end(refusal(Code.Aborted, "WORKER_SESSION_EXPIRED", "it ended"));
      }
      if (message.case === "heartbeat" && this.answersHeartbeats) {
        const { sequence } = message.value;
        stream.send({ message: { case: "heartbeatAck", value: { sequence } } });
      }
    }
  }

  async *#read(sha256: string, offset: number) {
    this.offsets.push(BigInt(offset));
    const file = this.#artifact.index.files.find((each) => each.sha256 === sha256);
    if (file === undefined) {
      throw new ConnectError(`no file ${sha256}`, Code.NotFound);
    }
    const bytes = await buffer(openFile(this.#artifact, file));
    for (let at = offset; at < bytes.length; at += 1_000) {
      yield { data: this.onChunk(bytes.subarray(at, at + 1_000), at) };
    }
  }
}
