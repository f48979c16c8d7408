/** Proposes the deployment that may be meant where none has the name that was given. */
import { ConnectError } from "@connectrpc/connect";
import { errorFacts, type TesseraClient } from "../client/index.ts";
import { nearest } from "../collections/nearest.ts";
import { CliError, ExitCode } from "./failure.ts";
import { plain } from "./plain.ts";

/** Deployments among which a mistyped name is looked for. */
const MAX_COMPARED_DEPLOYMENTS = 1_000;

/**
 * The error with the nearest name of those that the caller sees, if it is that there is no such
 * deployment; any other error as it is.
 *
 * @param given The words of the command line that may be the name.
 */
export async function withNearestDeployment(
  err: unknown,
  given: readonly string[],
  { client, organization }: { readonly client: TesseraClient; readonly organization: string },
): Promise<unknown> {
  if (!(err instanceof ConnectError) || errorFacts(err).reason !== "DEPLOYMENT_NOT_FOUND") {
    return err;
  }
  const { deployments } = await client.deployments
    .listDeployments({ organization, pageSize: MAX_COMPARED_DEPLOYMENTS })
    // It is the failure before that counts.
    .catch(() => ({ deployments: [] }));
  const names = deployments.map(({ name }) => name);
  const [meant] = given.flatMap((one) => nearest(one, names) ?? []);
  return new CliError(plain(err.rawMessage), {
    exitCode: ExitCode.notFound,
    hint:
      meant === undefined
        ? "tessera deployment list shows those that there are"
        : `did you mean ${plain(meant)}?`,
    cause: err,
  });
}
