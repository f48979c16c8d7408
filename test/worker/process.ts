/** A real worker: the host, forked as a node forks it, under the permission model. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
import { bundleService } from "../../src/artifacts/bundle.ts";
import { workerRights } from "../../src/deployments/permissions.ts";
import { readWorkerMessage } from "../../src/pool/checks/check.ts";
import { permissionFlags } from "../../src/pool/launch/node.ts";
import { encodeMessage } from "../../src/protocol/codec.ts";
import { FrameReader } from "../../src/protocol/frames.ts";
import type { ServiceManifest } from "../../src/protocol/manifest.ts";
import {
  type Call,
  type CallFailure,
  type CallResult,
  CHANNEL_DESCRIPTOR,
  type FileValue,
  MAX_HEADER_BYTES,
  type NodeMessage,
  type SentPayload,
  unpackPayload,
  type WorkerMessage,
} from "../../src/protocol/messages.ts";
import { stripped } from "../stripped.ts";

const SERVICES = new URL("../fixtures/services/", import.meta.url);

export function servicePath(name: string): string {
  return fileURLToPath(new URL(name, SERVICES));
}

export class WorkerProcess implements AsyncDisposable {
  readonly process: ChildProcess;
  readonly channel: Socket;
  readonly messages: WorkerMessage[] = [];
  readonly exited: Promise<number | null>;
  stderr = "";
  #ended = false;
  #lastId = 0;
  #changed = Promise.withResolvers<void>();

  constructor(path: string) {
    const rights = workerRights({ servicePath: path, scratchFolder: "/nowhere" });
    this.process = spawn(
      process.execPath,
      [...permissionFlags(rights), stripped("src/worker/main.ts")],
      {
        stdio: ["ignore", "pipe", "pipe", "pipe"],
        env: {},
      },
    );
    this.channel = this.process.stdio[CHANNEL_DESCRIPTOR] as Socket;
    this.process.stderr?.on("data", (chunk) => {
      this.stderr += chunk;
    });
    const reader = new FrameReader({
      maxBytes: Number.MAX_SAFE_INTEGER,
      maxHeaderBytes: MAX_HEADER_BYTES,
      onMessage: (header, attachments) => {
        const message = readWorkerMessage(header, attachments);
        if (message === undefined || attachments.fault !== undefined) {
          throw new Error(attachments.fault ?? `no message: ${JSON.stringify(header)}`);
        }
        this.messages.push(message);
        this.#wake();
      },
      onBroken: (reason) => {
        throw new Error(reason);
      },
    });
    this.channel.on("data", (chunk: Buffer) => reader.push(chunk));
    this.channel.on("error", () => {
      // The exit tells the rest.
    });
    this.exited = Promise.all([
      once(this.process, "exit"),
      once(this.channel, "close"),
      once(this.process.stderr as Readable, "close"),
    ]).then(([[code]]) => {
      this.#ended = true;
      this.#wake();
      return code;
    });
  }

  /** Forks, loads, and returns the worker with what it said: its manifest or its refusal. */
  static async load(name: string, more: { readonly isolated?: true } = {}) {
    const bundle = await bundleService(servicePath(name));
    const worker = new WorkerProcess(bundle.servicePath);
    worker.send({
      type: "load",
      servicePath: bundle.servicePath,
      code: bundle.code,
      maxResultBytes: 64 * 1024 * 1024,
      maxFileBytes: 64 * 1024 * 1024,
      scratchFolder: "/nowhere",
      ...more,
    });
    const answer = await worker.find((message) =>
      message.type === "ready" || message.type === "refused" ? message : undefined,
    );
    return { worker, answer };
  }

  static async ready(
    name: string,
    more: { readonly isolated?: true } = {},
  ): Promise<{ worker: WorkerProcess; manifest: ServiceManifest }> {
    const { worker, answer } = await WorkerProcess.load(name, more);
    if (answer.type !== "ready") {
      throw new Error(`refused: ${answer.type === "refused" ? answer.message : ""}`);
    }
    return { worker, manifest: answer.manifest };
  }

  send(message: NodeMessage): void {
    this.channel.write(encodeMessage(message));
  }

  /** The first message, come or to come, of which something is found. */
  async find<Found>(look: (message: WorkerMessage) => Found | undefined): Promise<Found> {
    for (let index = 0; ; index += 1) {
      while (index >= this.messages.length) {
        if (this.#ended) {
          throw new Error(`the worker exited with ${this.process.exitCode}: ${this.stderr}`);
        }
        await this.#changed.promise;
      }
      const found = look(this.messages[index] as WorkerMessage);
      if (found !== undefined) {
        return found;
      }
    }
  }

  start(endpoint: string, args: unknown, files: readonly FileValue[] = []): number {
    this.#lastId += 1;
    this.send({
      type: "calls",
      calls: [this.#call(endpoint, { json: JSON.stringify(args), files })],
    });
    return this.#lastId;
  }

  async outcome(id: number): Promise<CallResult> {
    return this.find((message) =>
      message.type === "results" ? message.results.find((result) => result.id === id) : undefined,
    );
  }

  async payload(
    endpoint: string,
    args: unknown,
    files: readonly FileValue[] = [],
  ): Promise<SentPayload> {
    const outcome = await this.outcome(this.start(endpoint, args, files));
    if ("failure" in outcome) {
      throw new Error(`${outcome.failure.reason}: ${outcome.failure.message}`);
    }
    return unpackPayload(outcome.result);
  }

  /** The JSON result of a call. */
  async result(
    endpoint: string,
    args: unknown,
    files: readonly FileValue[] = [],
  ): Promise<unknown> {
    return JSON.parse((await this.payload(endpoint, args, files)).json);
  }

  async failure(
    endpoint: string,
    args: unknown,
    files: readonly FileValue[] = [],
  ): Promise<CallFailure> {
    const outcome = await this.outcome(this.start(endpoint, args, files));
    if ("result" in outcome) {
      throw new Error(`succeeded with ${unpackPayload(outcome.result).json}`);
    }
    return outcome.failure;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill("SIGKILL");
    await this.exited;
  }

  #call(endpoint: string, payload: SentPayload): Call {
    return {
      id: this.#lastId,
      endpoint,
      arguments: payload,
      taskId: `task-${this.#lastId}`,
      attempt: 1,
      deadlineMs: 1_900_000_000_000,
    };
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}
