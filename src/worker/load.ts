/**
 * The loader of a service: imports the bundled module that the node sends under the
 * URL of the service's source file, so that `import.meta.url`, relative reads and
 * stack traces refer to that file. Bare specifiers resolve from its folder as usual,
 * except `tessera-platform`, which is always this copy of the SDK.
 */
import { type ResolveFnOutput, registerHooks, setSourceMapsSupport } from "node:module";
import { pathToFileURL } from "node:url";
import { type ReadyService, readyService } from "../sdk/describe.ts";
import { ServiceDefinitionError } from "../sdk/errors.ts";
import { serviceDefinitionOf } from "../sdk/service.ts";
import type { Meters } from "./custom-metrics.ts";
import { messageOf } from "./failure.ts";
import { deniedCause } from "./permission-errors.ts";
import { OWN_FOLDERS } from "./stack.ts";

/** Thrown when a service cannot be loaded. The message is for its author. */
class ServiceRefusedError extends Error {
  override readonly name = "ServiceRefusedError";
}

const EXTENSION = import.meta.url.endsWith(".ts") ? "ts" : "js";
const SDK_URL = new URL(`../sdk/index.${EXTENSION}`, import.meta.url).href;

/** Imports a service and makes it ready. Rejects with a `ServiceRefusedError`. */
export async function loadService(
  servicePath: string,
  code: string,
  meters: Meters,
): Promise<ReadyService> {
  setSourceMapsSupport(true, { nodeModules: false, generatedCode: false });
  const serviceUrl = pathToFileURL(servicePath).href;
  provideModules(serviceUrl, code);
  try {
    const module: Record<string, unknown> = await import(serviceUrl);
    const definition = serviceDefinitionOf(module.default);
    if (definition === undefined) {
      throw new ServiceRefusedError(noService(servicePath, module));
    }
    meters.declare(definition.metrics);
    return await readyService(module.default, definition, { metrics: meters.of(undefined) });
  } catch (err) {
    if (err instanceof ServiceRefusedError) {
      throw err;
    }
    throw new ServiceRefusedError(explain(err, servicePath), { cause: err });
  }
}

function provideModules(serviceUrl: string, code: string): void {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      if (specifier === "tessera-platform") {
        return nextResolve(SDK_URL, context);
      }
      if (specifier === "tessera") {
        return resolveFormerName(
          () => nextResolve(specifier, context),
          () => nextResolve(SDK_URL, context),
        );
      }
      if (specifier === serviceUrl) {
        return { url: serviceUrl, format: "module", shortCircuit: true };
      }
      return nextResolve(specifier, context);
    },
    load(url, context, nextLoad) {
      if (url === serviceUrl) {
        return { format: "module", source: code, shortCircuit: true };
      }
      return nextLoad(url, context);
    },
  });
}

/**
 * Artifacts built before the package was renamed import the SDK as `tessera`,
 * which anywhere else is another package.
 */
function resolveFormerName(
  installed: () => ResolveFnOutput,
  sdk: () => ResolveFnOutput,
): ResolveFnOutput {
  try {
    return installed();
  } catch {
    return sdk();
  }
}

function noService(servicePath: string, module: Record<string, unknown>): string {
  const named = Object.keys(module).find((name) => serviceDefinitionOf(module[name]) !== undefined);
  const problem =
    named !== undefined
      ? `exports its service as ${named}; export it as default`
      : "default" in module
        ? "has a default export that is not a service; decorate the class with @service({ name }), " +
          "or export service({ name, endpoints })"
        : "exports no service; it needs a default export: a class with @service({ name }), " +
          "or service({ name, endpoints })";
  return `${servicePath} ${problem}`;
}

/** A short message with the place in the service's source, without a stack trace. */
export function explain(thrown: unknown, servicePath: string): string {
  const place = thrown instanceof Error ? placeOf(thrown) : undefined;
  const at = place ?? servicePath;
  if (thrown instanceof ServiceDefinitionError) {
    return `${at}: ${thrown.message}`;
  }
  const denied = deniedCause(thrown);
  if (denied !== undefined) {
    return `${at}: ${denied}`;
  }
  const { code } = (thrown ?? {}) as { code?: unknown };
  if (code === "ERR_MODULE_NOT_FOUND") {
    const name = /Cannot find (?:package|module) '([^']+)'/.exec(messageOf(thrown))?.[1];
    return `${servicePath}: cannot find ${name ?? "a package"}; install it where the service is`;
  }
  const kind = thrown instanceof Error && thrown.name !== "Error" ? `${thrown.name}: ` : "";
  return `${at}: ${kind}${messageOf(thrown)}`;
}

const FRAME = /(?:\(|at (?:async )?)((?:file:\/\/|\/|[A-Za-z]:\\).*?:\d+:\d+)\)?$/;

/** Helpers that esbuild generates for decorators, which no source map covers. */
const COMPILER_HELPER = /^\s*at (?:\w+\.)?__\w+ /;

/** The innermost stack frame in the service's own code: no package, not Node, not this SDK. */
function placeOf(err: Error): string | undefined {
  for (const line of String(err.stack).split("\n")) {
    const place = FRAME.exec(line)?.[1]?.replace(/^file:\/\//, "");
    const isForeign =
      place === undefined ||
      COMPILER_HELPER.test(line) ||
      place.includes("/node_modules/") ||
      OWN_FOLDERS.some((folder) => place.startsWith(folder));
    if (!isForeign) {
      return place;
    }
  }
  return undefined;
}
