import { type FSWatcher, watch } from "node:fs";
import { dirname, join } from "node:path";
import type { Log } from "../queue/log.ts";
import { bundleService, type ServiceBundle } from "./bundle.ts";
import type { HostedDeployment } from "./hosted.ts";
import { whenLong } from "./when-long.ts";

/** Editors write a file in several steps; the reload waits until they are through. */
const SETTLE_MS = 100;

/** Files, and folders with them, that a service could be waiting for. */
const SOURCE = /(?:^[^.]+|\.(?:[cm]?[jt]sx?|json))$/;

export interface WatchOptions {
  readonly hosted: HostedDeployment;
  readonly log: Log;
}

/**
 * Deploys the service again whenever one of its source files changes. The
 * queue stays; running tasks finish on the code that began them; code that
 * cannot be loaded is reported and leaves the last good code serving. A change
 * while code is loading ends that and begins anew: code that never finishes
 * loading must not hold up the code that mends it.
 */
export function watchService(bundle: ServiceBundle, options: WatchOptions): AsyncDisposable {
  const { hosted, log } = options;
  let watchers: FSWatcher[] = [];
  let known = new Set<string>();
  let failed = false;
  let settle: NodeJS.Timeout | undefined;
  let loading: AbortController | undefined;
  let reloading: Promise<void> | undefined;
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
        settle = setTimeout(onChange, SETTLE_MS);
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
    loading?.abort(new Error("the source has changed again"));
    reloading ??= reloadAll().finally(() => {
      reloading = undefined;
    });
  };
  const reloadAll = async (): Promise<void> => {
    while (changed && !ended) {
      changed = false;
      loading = new AbortController();
      await reload(loading.signal);
      loading = undefined;
    }
  };
  const reload = async (signal: AbortSignal): Promise<void> => {
    try {
      const next = await bundleService(bundle.servicePath);
      observe(next.watchFiles);
      const deployed = hosted.deploy(next, signal);
      const { endpoints } = await whenLong(deployed, (seconds) =>
        log.warn(
          { seconds },
          "the service takes long to load; the code before it goes on meanwhile, and the next change begins anew",
        ),
      );
      failed = false;
      log.info({ endpoints: endpoints.map(({ name }) => name) }, "the service was reloaded");
    } catch (err) {
      if (signal.aborted) {
        return;
      }
      failed = true;
      const message = err instanceof Error ? err.message : String(err);
      log.error(
        { reason: message },
        "the service could not be reloaded; the code before it goes on",
      );
    }
  };
  observe(bundle.watchFiles);
  return {
    async [Symbol.asyncDispose]() {
      ended = true;
      clearTimeout(settle);
      loading?.abort(new Error("the server is shutting down"));
      await reloading;
      close(watchers);
    },
  };
}

function close(watchers: readonly FSWatcher[]): void {
  for (const watcher of watchers) {
    watcher.close();
  }
}
