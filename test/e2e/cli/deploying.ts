/** A platform that answers the calls of `tessera deploy` as a test says, and keeps what it got. */
import { createHash } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { AuthService, PrincipalKind } from "../../../gen/tessera/v1/auth_pb.js";
import {
  type CreateRevisionRequest,
  type DeploymentLogLineSchema,
  DeploymentSchema,
  DeploymentService,
  DeploymentStatus,
  type WatchDeploymentLogsRequest,
  type WatchDeploymentsRequest,
  type WatchDeploymentsResponseSchema,
} from "../../../gen/tessera/v1/deployment_pb.js";
import { problem } from "../../../src/errors.ts";
import { type Answering, answeringCalls } from "./answering.ts";
import { type Outcome, Person, type RunOptions } from "./person.ts";

type DeploymentInit = Omit<MessageInitShape<typeof DeploymentSchema>, "$typeName" | "$unknown">;

export class Receiver implements AsyncDisposable {
  /** Files by their digest. */
  readonly files = new Map<string, Buffer>();
  readonly uploads: string[] = [];
  readonly revisions: CreateRevisionRequest[] = [];
  readonly logRequests: WatchDeploymentLogsRequest[] = [];
  readonly watchRequests: WatchDeploymentsRequest[] = [];
  /** What the deployment says of itself with each question; the last one stays. */
  states: (DeploymentInit | Error)[] = [{ status: DeploymentStatus.READY, revision: 1 }];
  secretNames: string[] = [];
  /** Called before an upload is taken. */
  onUpload: (count: number) => void = () => {};
  /** Called before a revision is taken. */
  onRevision: () => void = () => {};
  logs: (
    req: WatchDeploymentLogsRequest,
  ) => AsyncIterable<MessageInitShape<typeof DeploymentLogLineSchema>> = async function* () {};
  changes: () => AsyncIterable<MessageInitShape<typeof WatchDeploymentsResponseSchema>> =
    async function* () {};
  readonly person = new Person();
  #answering: Answering | undefined;

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#answering = await answeringCalls((router) => {
      router.service(AuthService, {
        getCurrentPrincipal: () => ({ kind: PrincipalKind.PERSONAL_TOKEN, organization: "acme" }),
      });
      router.service(DeploymentService, {
        findMissingFiles: ({ sha256 }) => ({
          sha256: sha256.filter((digest) => !receiver.files.has(digest)),
        }),
        uploadFile: (messages) => receiver.#take(messages),
        createRevision: (req) => {
          receiver.onRevision();
          receiver.revisions.push(req);
          const { authorization = false } = req;
          return { ...receiver.#describe(), authorization, status: DeploymentStatus.STARTING };
        },
        getDeployment: () => {
          if (receiver.revisions.length === 0 && receiver.secretNames.length === 0) {
            throw problem("DEPLOYMENT_NOT_FOUND", "there is none");
          }
          const [state = {}] = receiver.states;
          if (receiver.states.length > 1) {
            receiver.states.shift();
          }
          if (state instanceof Error) {
            throw state;
          }
          return { ...receiver.#describe(), ...state };
        },
        watchDeployments: (req) => {
          receiver.watchRequests.push(req);
          return receiver.changes();
        },
        watchDeploymentLogs: (req) => {
          receiver.logRequests.push(req);
          return receiver.logs(req);
        },
      });
    });
    return receiver;
  }

  get url(): string {
    return this.#answering?.url ?? "";
  }

  /** Runs a command of somebody who is logged in there. */
  async run(args: readonly string[], options: RunOptions = {}): Promise<Outcome> {
    const env = {
      SERVICE_CLOUD_API_KEY: "tsrp_something",
      SERVICE_CLOUD_API_ENDPOINT: this.url,
      ...options.env,
    };
    return await this.person.run(args, { ...options, env });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.person[Symbol.dispose]();
    await this.#answering?.[Symbol.asyncDispose]();
  }

  #describe(): DeploymentInit {
    const name = this.revisions.at(-1)?.deployment ?? "";
    return create(DeploymentSchema, {
      name,
      organization: "acme",
      url: `http://${name}.acme.apps.localhost:3000`,
      targetRevision: this.revisions.length,
      settings: { secretNames: this.secretNames },
    });
  }

  async #take(messages: AsyncIterable<{ part: { case?: string; value?: unknown } }>) {
    let digest = "";
    const chunks: Uint8Array[] = [];
    for await (const { part } of messages) {
      if (part.case === "header") {
        digest = (part.value as { sha256: string }).sha256;
        this.uploads.push(digest);
        this.onUpload(this.uploads.length);
      } else {
        chunks.push(part.value as Uint8Array);
      }
    }
    const content = Buffer.concat(chunks);
    if (createHash("sha256").update(content).digest("hex") !== digest) {
      throw new ConnectError("another content", Code.InvalidArgument);
    }
    this.files.set(digest, content);
    return {};
  }
}
