/** Writes what the program has loaded to standard error when it ends. */
import { registerHooks } from "node:module";

const urls = new Set<string>();
registerHooks({
  load(url, context, next) {
    urls.add(url);
    return next(url, context);
  },
});
process.on("exit", () => {
  process.stderr.write(`modules:${JSON.stringify([...urls])}\n`);
});
