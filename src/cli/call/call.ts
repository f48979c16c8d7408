/** `tessera call`: calls an endpoint; waits for the result if it is a task. */
import type { Command } from "commander";
import {
  createEndpoint,
  factsOf,
  fetchSchema,
  InvalidArgumentsError,
  type SchemaRoute,
} from "../../client/deployment.ts";
import type { CloudActions } from "../command.ts";
import { usageError } from "../failure.ts";
import { type DeploymentTarget, type TargetFlags, targetCommand } from "../target.ts";
import { ARGUMENTS, ARGUMENTS_NOTE, readArguments } from "./arguments.ts";
import { OUTPUT_FILE, type ResultFlags, writePieces, writeResult } from "./result.ts";
import { waitFor } from "./waiting.ts";

export const ENDPOINT = ["<endpoint>", "its name"] as const;

interface CallFlags extends TargetFlags, ResultFlags {}

export function endpointCallCommand(actions: CloudActions): Command {
  return targetCommand<CallFlags>("call", actions, {
    description:
      "Call an endpoint and write what it returns, a streamed result as it comes; a task is queued and waited for.",
    arguments: [ENDPOINT, ARGUMENTS],
    options: [OUTPUT_FILE],
    formats: false,
    examples: [
      "tessera call summarize @article.json sentences=2 --url http://localhost:3000",
      'tessera call summarize \'{"text": "…", "sentences": 2}\' --deployment summarizer',
      "tessera call classify image=@seven.png --deployment digits",
      "tessera call contact_sheet images=@a.png images=@b.png --deployment digits --output-file sheet.png",
    ],
    note: ARGUMENTS_NOTE,
    run: async (target, flags, [name = "", ...given]) => {
      const args = await readArguments(given, target.terminal.streams.stdin);
      const { connection, signal } = target;
      const { routes } = await fetchSchema(connection, { signal });
      const route = routes.find((each) => each.name === name);
      const endpoint = createEndpoint(connection, name, route && factsOf(route));
      const explain = (err: unknown): never => {
        throw withUnknownNames(err, args, route);
      };
      // The bytes of a file come as they are made in any case.
      if (route?.output.is_stream && !route.is_task && route.output.type !== "file") {
        const isText = route.output.type === "string";
        const pieces = endpoint.stream(args, { signal });
        await writePieces(target, pieces, { ...flags, isText }).catch(explain);
      } else {
        // The name of a mounted server is its path; its requests are tasks.
        const isTask = route?.is_task === true || name.startsWith("/");
        const result = await call(target, endpoint, { args, isTask }).catch(explain);
        await writeResult(target, result, flags);
      }
    },
  });
}

/**
 * A refusal of the arguments, and which of them the endpoint does not name: a schema may allow
 * others, so that the server only misses what is written differently.
 */
function withUnknownNames(
  err: unknown,
  args: Record<string, unknown>,
  route: SchemaRoute | undefined,
): unknown {
  const known = Object.keys(route?.input.properties ?? {});
  const unknown = Object.keys(args).filter((name) => !known.includes(name));
  const isSaid = (name: string) => err instanceof Error && err.message.includes(`"${name}"`);
  if (!(err instanceof InvalidArgumentsError) || route === undefined || unknown.every(isSaid)) {
    return err;
  }
  const takes = known.length === 0 ? "it takes none" : `it takes ${known.join(", ")}`;
  const which = unknown.length === 1 ? "is no argument" : "are no arguments";
  return usageError(err.message, `${unknown.join(", ")} ${which} of ${route.name}: ${takes}`);
}

interface Calling {
  readonly args: Record<string, unknown>;
  readonly isTask: boolean;
}

async function call(
  target: DeploymentTarget,
  endpoint: ReturnType<typeof createEndpoint>,
  { args, isTask }: Calling,
) {
  const { signal } = target;
  if (!isTask) {
    return endpoint.open(args, { signal });
  }
  const task = await endpoint.submit(args, { signal });
  await waitFor({ ...target, output: "table" }, task);
  return task.open({ signal });
}
