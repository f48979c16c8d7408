/** `tessera worker` as a process of its own. */
import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import { Program } from "../cli/program.ts";
import type { World } from "../hosting/world.ts";

/** Longer than most tests take. */
const TOKEN_LIFE_MS = 60 * 60_000;

/** A token with which workers join these deployments. */
export async function workerToken(
  world: World,
  deployments: readonly string[],
  validForMs = TOKEN_LIFE_MS,
): Promise<string> {
  const expiresAt = new Date(Date.now() + validForMs).toISOString();
  const fields = { access: ["worker"], deployments, expires_at: expiresAt };
  return (await world.platform.createToken(world.cookie, fields)).value;
}

export interface AgentOptions {
  /** Where it joins. Default: the world's platform. */
  readonly url?: string;
  readonly token: string;
  readonly deployment: string;
  readonly flags?: readonly string[];
  /** Its data folder. Default: one of its own. */
  readonly data?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** When it is killed at the latest. Default: longer than most tests take. */
  readonly limitMs?: number;
}

/** Starts an agent; each has a data folder of its own, which goes with the world's. */
export function startAgent(world: World, options: AgentOptions): Program {
  const { url = world.platform.url, token, deployment, flags = [], env = {}, limitMs } = options;
  const { data = mkdtempSync(join(world.folder.path, "agent-")) } = options;
  return new Program(
    [
      "worker",
      ...["--join", url, "--deployment", deployment, "--data", data],
      ...["--sandbox", "permission", ...flags],
    ],
    {
      env: { TESSERA_WORKER_TOKEN: token, TESSERA_LOG_LEVEL: "info", ...env },
      ...(limitMs !== undefined && { limitMs }),
    },
  );
}

/** Resolves when the agent has joined. */
export async function hasJoined(agent: Program): Promise<void> {
  await agent.says("stdout", / joined http[\s\S]*Ctrl-C finishes/);
}
