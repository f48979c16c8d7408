import { type FSWatcher, watch } from "node:fs";
import { dirname, join } from "node:path";
import type { Log } from "../queue/log.ts";
import { bundleService, type ServiceBundle } from "./bundle.ts";
import type { HostedDeployment } from "./hosted.ts";

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
 * cannot be loaded is reported and leaves the last good code serving.
 */
export function watchService(bundle: ServiceBundle, options: WatchOptions): AsyncDisposable {
  const { hosted, log } = options;
  let watchers: FSWatcher[] = [];
  let known = new Set<string>();
  let failed = false;
  let settle: NodeJS.Timeout | undefined;
  let reloading: Promise<void> = Promise.resolve();
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
        settle = setTimeout(() => {
          reloading = reloading.then(reload);
        }, SETTLE_MS);
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
  const reload = async (): Promise<void> => {
    if (ended) {
      return;
    }
    try {
      const next = await bundleService(bundle.servicePath);
      observe(next.watchFiles);
      const { endpoints } = await hosted.deploy(next);
      failed = false;
      log.info({ endpoints: endpoints.map(({ name }) => name) }, "the service was reloaded");
    } catch (err) {
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
      close(watchers);
      await reloading;
    },
  };
}

function close(watchers: readonly FSWatcher[]): void {
  for (const watcher of watchers) {
    watcher.close();
  }
}
