/** `tessera token create` and `update`. */
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { stringify } from "yaml";
import {
  CreateTokenResponseSchema,
  type Deployment,
  type Token,
  TokenAccess,
  TokenKind,
} from "../../client/index.ts";
import { type CloudActions, type CommandRun, callCommand, option } from "../command.ts";
import { CliError, usageError } from "../failure.ts";
import { plain } from "../plain.ts";
import {
  ELEVATED_NOTE,
  SESSION_OPTIONS,
  type SessionFlags,
  withTokenOrSession,
} from "../session.ts";
import { parseMoment } from "../times.ts";
import { findToken, TOKEN } from "./find.ts";
import { accessOf, KINDS, TOKEN_OPTIONS, type TokenFlags, tokenChange } from "./flags.ts";
import { showToken, showValue } from "./view.ts";

/** The default lifetime of a new token. */
const USUAL_LIFE = "90d";

interface CreateFlags extends TokenFlags, SessionFlags {
  readonly kind: string;
}

export function createCommand(actions: CloudActions): Command {
  return callCommand<CreateFlags>("create", actions, {
    description: `Make a token. Its value is shown once, on standard output. ${ELEVATED_NOTE}`,
    arguments: [["<name>", "1 to 100 characters"]],
    options: [
      option("--kind <kind>", "personal: yours; organization: made by admins, outlives them")
        .choices(Object.keys(KINDS))
        .default("personal"),
      ...TOKEN_OPTIONS,
      option(
        "--expires <when>",
        "so long from now (90d, 12h), or a time (2027-01-31) (default: 90d, or with the login's token, if that ends sooner)",
      ),
      option("--not-before <when>", "usable from then on (default: at once)"),
      option(
        "--endpoint <url>",
        "the platform, for who is not logged in: asks for your e-mail address and password",
      ),
      ...SESSION_OPTIONS,
    ],
    examples: [
      "tessera token create laptop --developer-operations",
      "tessera token create laptop --developer-operations --endpoint http://localhost:3000 --email you@example.com",
      "tessera token create ci --kind organization --developer-operations --expires 365d",
      "tessera token create shop --deployment summarizer --allow-network 203.0.113.0/24",
    ],
    run: createToken,
  });
}

async function createToken(
  call: CommandRun,
  flags: CreateFlags,
  [name = ""]: readonly string[],
): Promise<void> {
  // Naming deployments implies access to them.
  const named = flags.deployment !== undefined || flags.allDeployments === true;
  const isForMachines = accessOf(flags).some(
    (access) => access === TokenAccess.WORKER || access === TokenAccess.LAUNCH,
  );
  const meant = named && !isForMachines ? { ...flags, protectedEndpoint: true } : flags;
  if (accessOf(meant).length === 0) {
    throw usageError(
      "say what the token is for: --developer-operations, --deployment <name>, --all-deployments, --worker, --access launch or --monitoring",
    );
  }
  if (call.loggedIn && accessOf(meant).includes(TokenAccess.MONITORING)) {
    await requireMonitoring(call);
  }
  const { token } = tokenChange(meant, call.clock.now());
  const kind = KINDS[flags.kind] ?? TokenKind.UNSPECIFIED;
  const created = await withTokenOrSession(call, flags, async (client, organization, options) => {
    const expiresAt =
      token.expiresAt ?? (await usualEnd(call, { byToken: client === call.client }));
    const fields = { ...token, ...(expiresAt && { expiresAt }) };
    return client.tokens.createToken({ ...fields, organization, kind, name }, options);
  });
  if (call.output === "json") {
    call.show(CreateTokenResponseSchema, created, () => "");
    return;
  }
  showValue(call, {
    token: created.token,
    value: created.value,
    intro: `Made token ${name} (${created.token?.tokenId}).`,
    login: created.loginCommand,
  });
  await tellUse(call, created.token);
  if (created.token?.access.includes(TokenAccess.MONITORING)) {
    const { terminal, context } = call;
    const value = terminal.interactive ? created.value : undefined;
    terminal.say(`\nFor the configuration of your Prometheus:\n`);
    terminal.say(scrapeConfig(context.endpoint, value));
  }
}

/** Says what to do with a token that is for a deployment: call it, or join a machine. */
async function tellUse(call: CommandRun, token: Token | undefined): Promise<void> {
  const { access = [], allDeployments = false, deployments: [named] = [] } = token ?? {};
  if (token === undefined || (named === undefined && !allDeployments)) {
    return;
  }
  const found = await exampleOf(call, token);
  const name = plain(found?.name ?? named ?? "<deployment>");
  const endpoint = plain(found?.endpoints[0]?.name ?? "<endpoint>");
  call.terminal.say(
    access.includes(TokenAccess.WORKER)
      ? `Join a machine with it, as TESSERA_WORKER_TOKEN: tessera worker --join ${call.context.endpoint} --deployment ${name}`
      : `Call with it, as TESSERA_TOKEN: tessera call ${endpoint} ${found === undefined ? `--deployment ${name}` : `--url ${plain(found.url)}`}`,
  );
}

/** A deployment that the token is for; undefined where this login sees none. */
async function exampleOf(
  { client, loggedIn }: CommandRun,
  { organization, deployments: [deployment] }: Token,
): Promise<Deployment | undefined> {
  if (!loggedIn) {
    return undefined;
  }
  try {
    if (deployment !== undefined) {
      return await client.deployments.getDeployment({ organization, deployment });
    }
    return (await client.deployments.listDeployments({ organization, pageSize: 1 })).deployments[0];
  } catch {
    // It is only an example: a token may make others and see no deployments.
    return undefined;
  }
}

/** Says that monitoring is off before anything is said of who may make such a token. */
async function requireMonitoring(call: CommandRun): Promise<void> {
  const organization = await call.organizationName();
  const found = await call.client.organizations.getOrganization({ organization });
  if (!found.monitoringEnabled) {
    throw new CliError(`monitoring tokens are not enabled for ${organization}`, {
      hint: found.monitoringAskedAt
        ? `${found.monitoringAskedBy} has asked for them; the operator of the platform enables them: tessera admin monitoring enable --organization ${organization}`
        : `an admin asks the operator of the platform for them: tessera org ask-for-monitoring ${organization}`,
    });
  }
}

/**
 * The default end; undefined when the creating token ends earlier, which then
 * also ends the new one.
 */
async function usualEnd(
  call: CommandRun,
  { byToken }: { readonly byToken: boolean },
): Promise<Timestamp | undefined> {
  const usual = parseMoment("--expires", USUAL_LIFE, call.clock.now());
  const ofToken = byToken ? (await call.principal()).expiresAt : undefined;
  return ofToken !== undefined && timestampMs(ofToken) < timestampMs(usual) ? undefined : usual;
}

interface UpdateFlags extends TokenFlags, SessionFlags {
  readonly name?: string;
}

export function updateCommand(actions: CloudActions): Command {
  return callCommand<UpdateFlags>("update", actions, {
    description: `Change a token. Access, deployments and networks replace what it has. ${ELEVATED_NOTE}`,
    arguments: [TOKEN],
    options: [
      option("--name <name>", "1 to 100 characters"),
      ...TOKEN_OPTIONS,
      option("--expires <when>", "so long from now (90d, 12h), or a time (2027-01-31)"),
      option("--not-before <when>", "usable from then on; now lifts it"),
      ...SESSION_OPTIONS,
    ],
    examples: [
      "tessera token update ci --expires 365d",
      "tessera token update shop --deployment summarizer --deployment digits",
      "tessera token update shop --allow-network any",
    ],
    run: async (call, flags, [token = ""]) => {
      const { token: change, paths } = tokenChange(flags, call.clock.now());
      if (paths.length === 0) {
        throw usageError("say what to change: tessera token update --help shows what can be");
      }
      const { tokenId } = await findToken(call, token);
      const changed = await withTokenOrSession(call, flags, (client, organization, options) =>
        client.tokens.updateToken(
          { organization, token: { ...change, tokenId }, updateMask: { paths } },
          options,
        ),
      );
      showToken(call, changed);
    },
  });
}

/** Stands for the value where logs may keep the output. */
const PLACEHOLDER = "<token>";

/**
 * Writes the entry of `scrape_configs` with which a Prometheus reads an
 * organization's metrics. Without `value` it contains a placeholder for the
 * token.
 */
function scrapeConfig(endpoint: string, value: string | undefined): string {
  const { protocol, host, pathname } = new URL(endpoint);
  return stringify({
    scrape_configs: [
      {
        job_name: "tessera",
        scheme: protocol.slice(0, -1),
        honor_labels: true,
        metrics_path: `${pathname.replace(/\/$/, "")}/federate`,
        params: { "match[]": ['{__name__=~".+"}'] },
        authorization: { credentials: value ?? PLACEHOLDER },
        static_configs: [{ targets: [host] }],
      },
    ],
  });
}
