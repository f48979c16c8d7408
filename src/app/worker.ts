/** Runs `tessera worker`: workers of a deployment for a platform elsewhere, put together. */
import { join } from "node:path";
import { runAgent } from "../agent/agent.ts";
import { AgentArtifacts } from "../agent/artifacts.ts";
import { AgentModels } from "../agent/models.ts";
import { SessionNotes } from "../agent/session-notes.ts";
import { PYTHON_UNAVAILABLE } from "../artifacts/environments/environment.ts";
import { currentPlatform } from "../artifacts/platform.ts";
import type { WorkerConfig, WorkerSecrets } from "../config/worker.ts";
import { CacheFolders } from "../deployments/cache-folders.ts";
import { ScratchFolders } from "../deployments/scratch.ts";
import { createLog } from "../log/pino.ts";
import type { Gpu } from "../pool/gpus/gpus.ts";
import { GpuLedger, SHARES_UNTOLD } from "../pool/gpus/ledger.ts";
import { NvidiaSmi } from "../pool/gpus/nvidia-smi.ts";
import { launchersFor } from "../pool/launchers.ts";
import { findSandbox, type Sandbox } from "../pool/sandbox/sandbox.ts";
import { FileKeeper } from "../storage/files/keeper.ts";
import { createIdSource } from "../tasks/id.ts";
import { version } from "../version.ts";
import { openLocalBlobs } from "./adapters.ts";
import { openDataFolder } from "./data-folder.ts";
import { onExit } from "./node.ts";
import { openPython, type PythonHosting } from "./python.ts";

/** What was started, for who started it. */
export interface StartedWorkers {
  readonly config: WorkerConfig;
  readonly version: string;
  /** What holds the workers. */
  readonly sandbox: Sandbox;
  /** Those of the machine. */
  readonly gpus: readonly Gpu[];
  /** Undefined where services in Python do not run. */
  readonly python: PythonHosting | undefined;
  readonly revision: number;
}

interface WorkerRun {
  /** Aborts when the workers are to finish their calls and leave. */
  readonly leave: AbortSignal;
  /** The first worker has joined. */
  onJoined(joined: StartedWorkers): void;
}

/**
 * Runs workers until they have left. Rejects with one message when this machine cannot run them,
 * or the platform refuses them; then nothing is left running.
 */
export async function runWorkers(
  config: WorkerConfig,
  secrets: WorkerSecrets,
  { leave, onJoined }: WorkerRun,
): Promise<void> {
  await using resources = new AsyncDisposableStack();
  openDataFolder(config.dataFolder);
  const log = createLog(config.logLevel);
  const now = Date.now;
  const sandbox = await findSandbox(config.sandbox, config.searchPath);
  const python = await openPython(
    { config, packages: secrets.packages, sandbox },
    { log, now },
    resources,
  );
  const scratch = new ScratchFolders(now());
  const removeScratch = (): void => scratch.removeAll();
  resources.defer(removeScratch);
  onExit(removeScratch, resources);
  const blobs = openLocalBlobs(scratch.create());
  await resources.use(blobs).start();
  const artifacts = resources.use(
    new AgentArtifacts({ folder: join(config.dataFolder, "artifacts"), log }),
  );
  await artifacts.start();
  const models = resources.use(
    new AgentModels({
      folder: join(config.dataFolder, "models"),
      maxBytes: config.maxModelsBytes,
      log,
    }),
  );
  await models.start();
  const caches = resources.use(
    new CacheFolders({
      folder: join(config.dataFolder, "caches"),
      maxBytes: config.maxCacheBytes,
      log,
    }),
  );
  void caches.deleteUnused(Date.now());
  const gpus = resources.use(await NvidiaSmi.open({ searchPath: config.searchPath, log }));
  let hasJoined = false;
  await runAgent(
    {
      ...config,
      token: secrets.token,
      machine: {
        artifacts,
        models,
        environments: python?.environments,
        pythonUnavailable: PYTHON_UNAVAILABLE,
        layers: python?.layers,
        images: python?.images,
        scratch,
        launchOf: launchersFor(sandbox),
        caches,
        gpus: new GpuLedger(gpus, { onUntold: () => log.warn({}, SHARES_UNTOLD) }),
        allowedEgress: sandbox.level === "kernel" ? config.allowedEgress : undefined,
        log,
      },
      local: new FileKeeper({
        blobs,
        newId: createIdSource(),
        now,
        onFailed: (err) => log.error({ err }, "a result could not be kept on this machine"),
      }),
      notes: new SessionNotes(join(config.dataFolder, "sessions"), config, log),
      version,
      platform: currentPlatform(),
      pythons: python?.named.map((each) => each.version) ?? [],
      now: () => performance.now(),
      onJoined: ({ revision }) => {
        if (!hasJoined) {
          hasJoined = true;
          onJoined({ config, version, sandbox, gpus: gpus.list, python, revision });
        }
      },
    },
    leave,
  );
}
