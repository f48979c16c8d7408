import { type FSWatcher, watch } from "node:fs";
import { dirname, join } from "node:path";
import type { OpenedService } from "../artifacts/open.ts";
import type { Deployment } from "../deployments/deployment.ts";
import type { Log } from "../log/log.ts";
import type { ServiceManifest } from "../protocol/manifest.ts";
import { whenLong } from "./slow-load.ts";

/**
 * Quiet time after a change of a file before the service is reloaded, because editors write a
 * file in several steps.
 */
const RELOAD_SETTLE_MS = 100;

/** Files, and folders with them, that a service could be waiting for. */
const SOURCE = /(?:^[^.]+|\.(?:[cm]?[jt]sx?|json|py))$/;

interface WatchServiceOptions {
  readonly deployment: Deployment;
  readonly log: Log;
  /** Opens the service anew, after a change. */
  open(): Promise<OpenedService>;
}

interface WatchedService extends AsyncDisposable {
  /**
   * Resolves when the first code has been loaded: that of the bundle, or of a
   * change that came meanwhile. Rejects when the bundle cannot be loaded.
   */
  readonly loaded: Promise<ServiceManifest>;
}

/**
 * Deploys the service, and again whenever one of its source files changes. The
 * queue stays; running tasks finish on the code that began them; a change that
 * cannot be loaded is reported and leaves the last good code serving. A change
 * while code is loading, the first included, ends that and begins anew: code
 * that never finishes loading must not hold up the code that mends it.
 */
export function watchService(bundle: OpenedService, options: WatchServiceOptions): WatchedService {
  const { deployment, log, open } = options;
  const loaded = Promise.withResolvers<ServiceManifest>();
  let watchers: FSWatcher[] = [];
  let known = new Set<string>();
  let serves = false;
  let failed = false;
  let settle: NodeJS.Timeout | undefined;
  let loading: AbortController | undefined;
  let underWay: Promise<void> | undefined;
  let given: OpenedService | undefined = bundle;
  let changed = false;
  let ended = false;

  const concerns = (folder: string, name: string | null): boolean =>
    name === null ||
    known.has(join(folder, name)) ||
    // What could not be loaded may lack a file that is not there yet.
    (failed && SOURCE.test(name));
  const watchFolder = (folder: string): FSWatcher => {
    const watcher = watch(folder, (_event, name) => {
      if (concerns(folder, name)) {
        clearTimeout(settle);
        settle = setTimeout(onChange, RELOAD_SETTLE_MS);
      }
    });
    return watcher.on("error", (err) =>
      log.warn({ err, folder }, "a folder is not watched any more"),
    );
  };
  const observe = (files: readonly string[]): void => {
    known = new Set(files);
    // Folders, not files: an editor that saves by renaming replaces the file that was watched.
    // Always anew, for folders that were replaced; the old end last, so that nothing is missed.
    const before = watchers;
    watchers = [...new Set(files.map((file) => dirname(file)))].map(watchFolder);
    close(before);
  };
  const onChange = (): void => {
    changed = true;
    loading?.abort(new Error("the source has changed"));
    underWay ??= loadAll();
  };
  const loadAll = async (): Promise<void> => {
    while ((given || changed) && !ended) {
      changed = false;
      loading = new AbortController();
      await load(loading.signal);
      loading = undefined;
    }
    underWay = undefined;
  };
  const load = async (signal: AbortSignal): Promise<void> => {
    const first = given;
    given = undefined;
    try {
      const next = first ?? (await open());
      observe(next.watchFiles);
      const manifest = await whenLong(deployment.deploy(next, signal), (seconds) =>
        log.warn({ seconds }, `the service takes long to load; ${meanwhile()}`),
      );
      failed = false;
      if (serves) {
        const endpoints = manifest.endpoints.map(({ name }) => name);
        log.info({ endpoints }, "the service was reloaded");
      }
      serves = true;
      loaded.resolve(manifest);
    } catch (err) {
      if (signal.aborted) {
        return;
      }
      if (first) {
        loaded.reject(err);
        return;
      }
      failed = true;
      const message = err instanceof Error ? err.message : String(err);
      log.error({ reason: message }, unloadable());
    }
  };
  const meanwhile = (): string =>
    serves
      ? "the code before it goes on meanwhile, and the next change begins anew"
      : "it is served when it has, and the next change of a source file begins anew";
  const unloadable = (): string =>
    serves
      ? "the service could not be reloaded; the code before it goes on"
      : "the service could not be loaded; the next change begins anew";
  underWay = loadAll();
  return {
    loaded: loaded.promise,
    async [Symbol.asyncDispose]() {
      ended = true;
      clearTimeout(settle);
      loading?.abort(new Error("the server is shutting down"));
      await underWay;
      close(watchers);
    },
  };
}

function close(watchers: readonly FSWatcher[]): void {
  for (const watcher of watchers) {
    watcher.close();
  }
}
