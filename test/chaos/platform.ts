/** A platform that is set up by its command line, with the service of this folder deployed. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { type ChaosNode, ENTRY, ENVIRONMENT, SERVICE } from "./node.ts";
import { within } from "./within.ts";

const PERSON = ["--email", "ada@example.com"];
const COMMAND_TIMEOUT_MS = 120_000;

export const DEPLOYMENT = "chaos";
/** What calls name the deployment by. */
export const HEADERS = { "tessera-deployment": `acme/${DEPLOYMENT}` };

/** Where the platform has its data, as flags and variables of its commands. */
export interface Place {
  readonly flags: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** Makes the first person and an organization; resolves with the password. */
export function setUp({ flags, env = {} }: Place): Promise<string> {
  return tessera(["admin", "setup", "--organization", "acme", ...PERSON, ...flags], { env });
}

/** Makes a token of the organization at a node that serves. */
export async function createToken(
  { origin }: ChaosNode,
  ...[password, access]: [password: string, access: readonly string[]]
): Promise<string> {
  const at = ["--endpoint", origin, ...PERSON, "--password-stdin", "-o", "json"];
  const args = ["token", "create", ...access, "--kind", "organization", ...at];
  const written = await tessera(args, { input: `${password}\n` });
  return (JSON.parse(written) as { value: string }).value;
}

/** Deploys the service, for everybody to call. Resolves when it serves, or waits for machines. */
export async function deploy(
  node: ChaosNode,
  ...[password, settings]: [password: string, settings: readonly string[]]
): Promise<void> {
  const deployer = await createToken(node, password, ["deployer", "--developer-operations"]);
  const env = { SERVICE_CLOUD_API_KEY: deployer, SERVICE_CLOUD_API_ENDPOINT: node.origin };
  await tessera(["deploy", SERVICE, "--name", DEPLOYMENT, ...settings, "--no-authorization"], {
    env,
  });
}

/** Runs a command; resolves with what it wrote. */
async function tessera(
  args: readonly string[],
  { input = "", env = {} }: { readonly input?: string; readonly env?: object } = {},
): Promise<string> {
  const child = spawn(process.execPath, [ENTRY, ...args], { env: { ...ENVIRONMENT, ...env } });
  child.stdin.end(input);
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  const [written, said, [code]] = await within(COMMAND_TIMEOUT_MS, `tessera ${args[0]}`, ended);
  if (code !== 0) {
    throw new Error(`tessera ${args.join(" ")} ended with ${code}: ${said}`);
  }
  return written.trim();
}
