/** Runs `tessera serve`: one service, started in order and ended in the opposite order. */
import { dirname, resolve, sep } from "node:path";
import { AuthService } from "../../gen/tessera/v1/auth_pb.js";
import { introspection } from "../api/principal.ts";
import { type OpenedService, openService } from "../artifacts/open.ts";
import { type ProgramService, withVirtualEnvironment } from "../artifacts/program.ts";
import { allowEveryone, requireToken } from "../auth/principal.ts";
import { sharedTaskAccess } from "../auth/task-access.ts";
import type { ServeConfig, ServeSecrets } from "../config/serve.ts";
import { isPostgres } from "../config/values.ts";
import { Deployment } from "../deployments/deployment.ts";
import { FirstLoad, singleDeployment } from "../deployments/directory.ts";
import { shuttingDown } from "../errors.ts";
import { newNodeId } from "../hosting/membership.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import type { Maintenance } from "../queue/maintenance/maintenance.ts";
import { bindPort, localUrl } from "../server/bind.ts";
import { playground } from "../server/pages/playground.ts";
import { Readiness } from "../server/readiness.ts";
import { register } from "../server/rpc/engine/invoker.ts";
import type { Hindrance } from "../server/rpc/health.ts";
import { version } from "../version.ts";
import { shownDatabase } from "./adapters.ts";
import { behindMounts, deploymentMetrics, serveDeployments } from "./deployment-routes.ts";
import { refusalOf, SHUTTING_DOWN } from "./health.ts";
import {
  type HttpOptions,
  type Node,
  type NodeFiles,
  onExit,
  openFiles,
  openMaintenance,
  openNode,
  serveHttp,
  startCleaners,
} from "./node.ts";
import { whenLong } from "./slow-load.ts";
import { watchService } from "./watch.ts";

const LOADING: Hindrance = {
  reason: "NO_WORKER",
  text: "the service is loading",
};

/** The organization of a service that is served alone. */
const LOCAL_ORGANIZATION = "local";

/** A service that is being served. */
export interface StartedService {
  readonly manifest: ServiceManifest;
  /** How many processes run it. */
  readonly workers: number;
  /** Where its tasks are, for people: without a password. */
  readonly storedIn: string;
  /** The port that was bound: the one configured, or any free one for 0. */
  readonly port: number;
  /** Where this machine reaches it, without a slash at the end. */
  readonly url: string;
  /** Drains and ends everything; the same promise every time. */
  stop(): Promise<void>;
}

/**
 * Serves one service: that of a file, or the program that `program` reads. Rejects with one message
 * when the service, the database or the port is not usable; then nothing is left running.
 */
export async function serveService(
  config: ServeConfig,
  secrets: ServeSecrets,
  program?: () => Promise<ProgramService>,
): Promise<StartedService> {
  const { token, workerEnv = {} } = secrets;
  const resources = new AsyncDisposableStack();
  try {
    const open = async (): Promise<OpenedService> =>
      openService((await program?.()) ?? config.servicePath, config.python);
    const bundle = await open();
    // First, and so released last: no worker may ever listen there.
    const bound = resources.use(await bindPort(config));
    const node = await openNode(
      {
        ...config,
        directDatabase: secrets.directDatabase,
        cells: [],
        tracingSecrets: secrets.tracing,
      },
      resources,
    );
    const { log } = node;
    warnOfDatabase(config, bundle, node);
    const files = await openFiles(node, config, resources);
    const readiness = new Readiness();
    /** Why the database refused last, or that the server loads or stops. */
    let hindrance: Hindrance | undefined = LOADING;
    readiness.set(false, hindrance);
    const maintenance = openMaintenance(node, resources);
    const deployment = resources.use(
      new Deployment({
        ...deploymentOptions(config, node, files, maintenance),
        workerAccess:
          program === undefined
            ? { ...config.workerAccess, env: workerEnv }
            : {
                ...config.workerAccess,
                processes: true,
                env: { ...programVariables(config), ...workerEnv },
              },
        models: Object.entries(config.models).map(([name, path]) => ({ name, path })),
        onReadiness: () => {
          hindrance = deployment.ready ? undefined : hindrance;
          readiness.set(deployment.ready, hindrance);
        },
      }),
    );
    node.refusals.on("unavailable", ({ cause }) => {
      hindrance = refusalOf(cause);
      deployment.storageRefused();
    });
    onExit(() => deployment.abandon(), resources);
    await maintenance.start();
    startCleaners(node, files.blobs, resources);
    const load = new FirstLoad();
    // Before the service has loaded: probes are answered meanwhile, and callers are held.
    const listener = await serveHttp(
      httpOptions(config, { token, deployment, load, node, readiness }),
      { ...node, bound },
      resources,
    );
    resources.defer(() => load.failed(shuttingDown()));
    const watching = config.watch
      ? resources.use(watchService(bundle, { deployment, log, open }))
      : undefined;
    const manifest = await (watching?.loaded ??
      whenLong(deployment.deploy(bundle), (seconds) =>
        log.warn({ seconds }, "the service takes long to load; it is served when it has"),
      ));
    load.done();
    let stopping: Promise<void> | undefined;
    const stop = async (): Promise<void> => {
      hindrance = SHUTTING_DOWN;
      await watching?.[Symbol.asyncDispose]();
      listener.retire();
      await deployment.drain(config.drainMs);
      await resources.disposeAsync();
    };
    const { port } = bound;
    const url = localUrl({ port, host: config.host });
    const workers = workersOf(config, manifest);
    const storedIn = shownDatabase(config.database);
    return { manifest, workers, storedIn, port, url, stop: () => (stopping ??= stop()) };
  } catch (err) {
    await resources.disposeAsync();
    throw err;
  }
}

function warnOfDatabase(
  { database }: ServeConfig,
  { servicePath }: OpenedService,
  { storage, unmeasured, log }: Node,
): void {
  for (const warning of unmeasured.warnings ?? []) {
    log.error({}, warning);
  }
  if (
    storage.capabilities.durable &&
    !isPostgres(database) &&
    resolve(database).startsWith(`${dirname(servicePath)}${sep}`)
  ) {
    log.warn({ database }, "the database lies in the service's folder, which the service may read");
  }
}

/** What a program has of the shell: where programs are found, first in the environment beside it. */
function programVariables({ servicePath, python }: ServeConfig): ServeConfig["python"]["env"] {
  return { ...python.env, PATH: withVirtualEnvironment(servicePath, python.env.PATH) };
}

/** How many processes run the service. */
function workersOf(
  { workers, defaultWorkers }: Pick<ServeConfig, "workers" | "defaultWorkers">,
  manifest: ServiceManifest,
): number {
  return workers ?? manifest.workers ?? defaultWorkers;
}

function deploymentOptions(
  config: ServeConfig,
  { storage, notifier, log, tracing, metrics, readers, now, newId }: Node,
  { keepers }: NodeFiles,
  maintenance: Maintenance,
) {
  return {
    organization: LOCAL_ORGANIZATION,
    counted: { metrics, organizationId: LOCAL_ORGANIZATION },
    storage,
    notifier,
    maintenance,
    log,
    tracing,
    newId,
    nodeId: newNodeId(storage.capabilities.shared),
    now,
    // One proves the service, which says how many there are to be.
    workers: config.workers ?? 1,
    workersOf: (manifest: ServiceManifest) => workersOf(config, manifest),
    graceMs: config.graceMs,
    readyTimeoutMs: config.readyTimeoutMs,
    maxResultBytes: config.maxResultBytes,
    maxFileBytes: config.maxFileBytes,
    files: keepers,
    readers,
    maxWaiting: config.maxWaiting,
  };
}

function httpOptions(
  config: ServeConfig,
  parts: {
    readonly token: string | undefined;
    readonly deployment: Deployment;
    readonly load: FirstLoad;
    readonly node: Node;
    readonly readiness: Readiness;
  },
): HttpOptions {
  const { token, deployment, load, node, readiness } = parts;
  const taskAccess = sharedTaskAccess(token, node.now);
  const serving = serveDeployments({ ...config, version, taskAccess });
  return {
    services: [...serving.services, register(AuthService, introspection)],
    plugins: [
      ...serving.plugins,
      deploymentMetrics(node.metrics),
      behindMounts(playground, config),
    ],
    directory: singleDeployment(deployment, { authorization: token !== undefined, load }),
    authenticate: token === undefined ? allowEveryone : requireToken(token),
    standalone: true,
    // Without a token, any page that the developer's browser shows could call.
    sameSiteOnly: token === undefined,
    allowedOrigins: config.allowedOrigins,
    health: readiness,
    bodyBudgetBytes: config.bodyBudgetBytes,
    connections: config.connections,
    // Who develops wants to see calls; who collects the log has to ask for them.
    logsCalls: process.stderr.isTTY,
  };
}
