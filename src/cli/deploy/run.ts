/** The steps of `tessera deploy`: build, upload, create the revision, wait for the roll-out. */
import { create, type MessageShape } from "@bufbuild/protobuf";
import type { BuildStep, BuiltArtifact } from "../../artifacts/build-options.ts";
import {
  CreateRevisionRequestSchema,
  type Deployment,
  DeploymentSchema,
  DeploymentStatus,
  errorFacts,
} from "../../client/index.ts";
import { inUnits } from "../../collections/sizes.ts";
import type { ServiceManifest } from "../../protocol/manifest.ts";
import { BUILD_STEPS, buildService } from "../building.ts";
import type { CommandRun, Surroundings } from "../command.ts";
import { CURL_AUTHORIZATION, curlBody, curlPath } from "../curl.ts";
import { waitForRollout } from "../deployment/rollout.ts";
import { sayWithheld, statusText } from "../deployment/view.ts";
import { describeFailure } from "../describe.ts";
import { CliError, usageError } from "../failure.ts";
import { plain } from "../plain.ts";
import { ProgressLine } from "../progress.ts";
import { uploadMissing } from "../upload.ts";
import { gitSource } from "./git.ts";
import { pinModels } from "./models.ts";
import { checkedName, type DeployFlags, type DeployPlan } from "./plan.ts";
import { readSecrets } from "./secrets.ts";

interface Storing {
  /** The deployment's. */
  readonly name: string;
  /** What this deploy sets. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

export class Deploying {
  readonly #call: CommandRun;
  readonly #plan: DeployPlan;
  readonly #surroundings: Surroundings;
  readonly #progress: ProgressLine;

  constructor(call: CommandRun, plan: DeployPlan, surroundings: Surroundings) {
    this.#call = call;
    this.#plan = plan;
    this.#surroundings = surroundings;
    this.#progress = new ProgressLine(call.terminal.streams, { quiet: call.output === "json" });
  }

  async run({ wait, git }: Pick<DeployFlags, "wait" | "git">): Promise<void> {
    const { terminal } = this.#call;
    using interruption = terminal.streams.interruption();
    const { signal } = interruption;
    try {
      // Checks the login before the work of a build.
      await this.#call.principal();
      const given = await this.#givenSecrets();
      await using resources = new AsyncDisposableStack();
      const made = await this.#artifact({ given, signal, resources });
      const name = this.#plan.name ?? checkedName(made.index.name);
      const secrets = { ...given, ...(await this.#neededSecrets(name, given)) };
      const built = await this.#pinned(made, { name, secrets, signal });
      const stored = await this.#upload(built, { name, secrets, git, signal });
      await this.#finish(stored, { built, wait, signal });
    } finally {
      this.#progress.end();
    }
  }

  /**
   * Reads the secrets that are known before the build: all of them if the
   * deployment's name is known.
   */
  async #givenSecrets(): Promise<Record<string, string>> {
    const { name, secrets } = this.#plan;
    const given = await readSecrets(secrets, this.#call.terminal);
    return name === undefined ? given : { ...given, ...(await this.#neededSecrets(name, given)) };
  }

  async #artifact(options: {
    readonly given: Readonly<Record<string, string>>;
    readonly signal: AbortSignal;
    readonly resources: AsyncDisposableStack;
  }): Promise<BuiltArtifact> {
    const { source, program, include, packages, image, settings } = this.#plan;
    const { unread, python, probing } = this.#plan;
    const { given, signal, resources } = options;
    if (unread !== undefined) {
      this.#call.done(`${unread} is for another service, and is not read`);
    }
    if (source.kind === "artifact") {
      this.#progress.step("reading the artifact");
      const { loadArtifact } = await import("../../artifacts/load.ts");
      return resources.use(await loadArtifact(source.path));
    }
    if (source.kind === "manifest") {
      // The artifact of a service whose workers bring their own code.
      const { loadManifest } = await import("../../artifacts/load.ts");
      return await loadManifest(source.path);
    }
    const building = {
      include,
      packages,
      lockSystem: (names: readonly string[]) => this.#lockSystem(names, signal),
      ...(image !== undefined && { image }),
      lockImage: (name: string) => this.#lockImage(name, signal),
      // The environment of the workers, as far as it is known here.
      env: { ...settings.env, ...given },
      onStep: (step: BuildStep) => this.#progress.step(`${BUILD_STEPS[step]} …`),
      signal,
      ...probing,
    };
    const { env } = this.#surroundings;
    const built = await buildService(program ?? source.path, building, { flags: python, env });
    this.#progress.end();
    for (const warning of built.warnings) {
      this.#call.terminal.say(`warning: ${warning}`);
    }
    return built;
  }

  /** The artifact with the versions of its models, which the platform fetches first. */
  async #pinned(built: BuiltArtifact, { name, secrets, signal }: Storing): Promise<BuiltArtifact> {
    const { models: declared = {} } = built.index.service;
    const { models: given } = this.#plan;
    if (Object.keys({ ...declared, ...given }).length === 0) {
      return built;
    }
    const { digestOf, withModels, writeIndex } = await import("../../artifacts/index-file.ts");
    const models = await pinModels(
      this.#call,
      { declared, given },
      {
        ...{ env: this.#surroundings.env, deployment: name, secrets },
        progress: this.#progress,
        onWarning: (text) => this.#call.terminal.say(`warning: ${text}`),
        signal,
      },
    );
    this.#progress.end();
    const index = withModels(built.index, models);
    return { ...built, index, digest: digestOf(writeIndex(index)) };
  }

  /**
   * Locks system packages to what the platform has of them; undefined where it runs none itself,
   * so that they are for workers that join.
   */
  async #lockSystem(names: readonly string[], signal: AbortSignal): Promise<string | undefined> {
    const { client, organization } = this.#call;
    const request = { organization, packages: [...names] };
    return await lockOf(client.deployments.lockSystemPackages(request, { signal }));
  }

  /** Locks a container image as the platform would fetch it; undefined as for system packages. */
  async #lockImage(image: string, signal: AbortSignal): Promise<string | undefined> {
    const { client, organization } = this.#call;
    return await lockOf(client.deployments.lockImage({ organization, image }, { signal }));
  }

  /** Reads the secrets that the file names and the deployment does not have yet. */
  async #neededSecrets(
    name: string,
    given: Readonly<Record<string, string>>,
  ): Promise<Record<string, string>> {
    const { neededSecrets, removedSecrets } = this.#plan;
    const wanted = neededSecrets.filter((secret) => !(secret in given));
    if (wanted.length === 0) {
      return {};
    }
    const there = await this.#existingSecrets(name);
    const missing = wanted.filter(
      (secret) => !there.includes(secret) || removedSecrets.includes(secret),
    );
    const { terminal } = this.#call;
    if (missing.length > 0 && !terminal.interactive) {
      throw usageError(
        `the service needs ${missing.length === 1 ? "the secret" : "the secrets"} ${missing.join(", ")}`,
        `add --secret ${missing[0]}=@file`,
      );
    }
    this.#progress.end();
    return await readSecrets(
      missing.map((secret) => ({ name: secret, file: undefined })),
      terminal,
    );
  }

  async #existingSecrets(name: string): Promise<readonly string[]> {
    const { client, organization } = this.#call;
    try {
      const { settings } = await client.deployments.getDeployment({
        organization,
        deployment: name,
      });
      return settings?.secretNames ?? [];
    } catch (err) {
      if (errorFacts(err).reason === "DEPLOYMENT_NOT_FOUND") {
        return [];
      }
      throw err;
    }
  }

  async #upload(
    built: BuiltArtifact,
    options: Storing & Pick<DeployFlags, "git">,
  ): Promise<Deployment> {
    const { organization, terminal } = this.#call;
    const { name, secrets, signal } = options;
    const { settings, authorization, removedSecrets, schedules } = this.#plan;
    const { env } = this.#surroundings;
    const source = options.git
      ? await gitSource(this.#plan.source.path, { env, signal })
      : undefined;
    const { writeIndex } = await import("../../artifacts/index-file.ts");
    const request = create(CreateRevisionRequestSchema, {
      organization,
      deployment: name,
      index: Buffer.from(writeIndex(built.index)),
      settings,
      secrets,
      removeSecrets: removedSecrets.filter((secret) => !(secret in secrets)),
      ...(source && { source }),
      ...(schedules && { schedules: { schedules: [...schedules] } }),
      ...(authorization !== undefined && { authorization }),
    });
    try {
      await this.#uploadFiles(built, signal);
      signal.throwIfAborted();
      return await this.#createRevision(request, built, signal);
    } catch (err) {
      if (signal.aborted) {
        this.#progress.end();
        terminal.say(
          "Nothing was deployed. What has been uploaded is kept for 36 hours: the same command goes on from there.",
        );
      }
      throw err;
    }
  }

  /**
   * Creates the revision. Ctrl-C does not interrupt the call, because that
   * would leave open whether the revision is stored. Uploads files again that
   * were swept meanwhile: an upload can take longer than files are kept.
   */
  async #createRevision(
    request: MessageShape<typeof CreateRevisionRequestSchema>,
    built: BuiltArtifact,
    signal: AbortSignal,
  ): Promise<Deployment> {
    const { deployments } = this.#call.client;
    try {
      return await deployments.createRevision(request);
    } catch (err) {
      const { reason, metadata } = errorFacts(err);
      if (reason === "ACCESS_DENIED" && metadata.field === "authorization") {
        throw new CliError(describeFailure(err).message ?? "the token may not open it", {
          hint: `nothing was deployed; with your password, you may: tessera deployment update ${request.deployment} --no-authorization, and then deploy`,
          cause: err,
        });
      }
      if (reason !== "FILES_MISSING") {
        throw err;
      }
      await this.#uploadFiles(built, signal);
      return await deployments.createRevision(request);
    }
  }

  async #uploadFiles(built: BuiltArtifact, signal: AbortSignal): Promise<void> {
    const { client, organization, clock } = this.#call;
    const { index } = built;
    const { openFile } = await import("../../artifacts/pack.ts");
    const progress = this.#progress;
    const done = await uploadMissing({
      client,
      organization,
      index,
      open: (file) => openFile(built, file),
      onProgress: (state) => progress.bar(state),
      wait: (ms, until) => clock.wait(ms, until),
      signal,
    });
    progress.end();
    progress.step(
      done.files === 0
        ? "nothing to upload: the platform has all files"
        : `uploaded ${done.files} of ${index.files.length} files, ${inUnits(done.totalBytes)}`,
    );
  }

  async #finish(
    stored: Deployment,
    options: {
      readonly built: BuiltArtifact;
      readonly wait: boolean;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const { built, wait, signal } = options;
    const { name, targetRevision: revision, version } = stored;
    const { terminal } = this.#call;
    // Before the wait: without them, it may not start.
    sayWithheld(this.#call, stored);
    const goesOn = `The roll-out of revision ${revision} goes on: tessera deployment get ${name}`;
    if (!wait) {
      this.#progress.end();
      await this.#show(stored, built);
      this.#call.done(goesOn);
      return;
    }
    try {
      const onState = ({ status, statusReason }: Deployment): void => {
        const [why = ""] = statusReason.split("\n");
        const state = `revision ${revision}: ${statusText(status)}`;
        this.#progress.step(why === "" ? state : `${state}, ${why}`);
      };
      const ready = await waitForRollout(this.#call, { name, revision, version, onState, signal });
      this.#progress.end();
      await this.#show(ready, built);
      if (ready.status === DeploymentStatus.DEGRADED) {
        const state = ready.workers > 0 ? "it serves, but is degraded" : "it takes no calls yet";
        terminal.say(`warning: ${state}: ${plain(ready.statusReason)}`);
      }
      if (ready.status === DeploymentStatus.STOPPED) {
        this.#call.done(`It is stopped, and stays so: tessera deployment start ${name}`);
      }
    } catch (err) {
      this.#progress.end();
      if (signal.aborted) {
        terminal.say(goesOn);
      }
      throw err;
    }
  }

  async #show(deployment: Deployment, { index, digest }: BuiltArtifact): Promise<void> {
    const { exampleOf } = await import("../../service/openapi/example.ts");
    const { program } = this.#surroundings;
    const { name, url, authorization, targetRevision } = deployment;
    const call = this.#call;
    call.done(
      plain(`Deployed revision ${targetRevision} of ${name}, artifact ${digest.slice(0, 12)}`),
    );
    const workers = workersNote(deployment, index.service.workers);
    if (workers !== undefined) {
      call.done(plain(workers));
    }
    call.show(DeploymentSchema, deployment, () => {
      const [first] = index.service.endpoints;
      const header = authorization ? CURL_AUTHORIZATION : "";
      const line =
        first && `  curl ${url}${curlPath(first)}${header} ${curlBody(first, exampleOf)}`;
      return [url, ...(line === undefined ? [] : ["", line, ""])].join("\n");
    });
    call.done(
      authorization
        ? `TESSERA_TOKEN is a token for it: ${program} token create caller --deployment ${name}`
        : `Anyone who can reach it may call it; to ask for a token: ${program} deployment update ${name} --authorization`,
    );
  }
}

/** The lock that the platform made; undefined where it runs no such service itself. */
async function lockOf(locking: Promise<{ readonly lock: string }>): Promise<string | undefined> {
  try {
    return (await locking).lock;
  } catch (err) {
    if (errorFacts(err).reason === "SANDBOX_UNAVAILABLE") {
      return undefined;
    }
    throw err;
  }
}

/** What becomes of the workers that a service asks for; undefined where it asks for none. */
function workersNote(
  { name, settings }: Deployment,
  declared: ServiceManifest["workers"],
): string | undefined {
  if (declared === undefined || settings?.maxWorkers === undefined) {
    return undefined;
  }
  const { maxWorkers } = settings;
  const most = `At most ${maxWorkers} ${maxWorkers === 1 ? "worker runs" : "workers run"} it`;
  return declared === maxWorkers
    ? `${most}, as the service says`
    : `${most}, and the service says ${declared}: tessera deployment update ${name} --workers 1..${declared}`;
}
